/* Slurm's state of this node, read and changed by scontrol, by its configured path. */
#include "config.h"
#include "check_node.h"

#include <stdlib.h>

#define SCONTROL_MS 15000.0

static int scontrol(const struct node_conf *c, const char *const *args, struct str *ret, struct err *err)
{
    struct strv argv = { 0 }, env = { 0 };
    struct child child = { .deadline_ms = SCONTROL_MS };
    int rc = file_trusted(c->scontrol, NULL, err);

    strv_add(&argv, c->scontrol);
    for (; *args; args++)
        strv_add(&argv, *args);
    env_set(&env, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    if (c->slurm_conf && *c->slurm_conf)
        env_set(&env, "SLURM_CONF", c->slurm_conf);
    child.argv = (const char *const *)argv.v;
    child.env = env.v;
    if (rc == 0)
        rc = child_run(&child, err);
    if (rc == 0 && child.status)
        rc = err_set(err, CODE_UNAVAILABLE, "'%s' failed: %.*s", c->scontrol,
                     child.errout.len ? (int)strcspn(child.errout.s, "\n") : 0, child.errout.len ? child.errout.s : "");
    if (rc == 0 && ret)
        str_addn(ret, child.out.len ? child.out.s : "", child.out.len);
    str_release(&child.out);
    str_release(&child.errout);
    strv_release(&argv);
    strv_release(&env);
    return rc;
}

/* " Reason=TEXT [root@2026-11-30T19:00:00]" at the end of the line; owned, NULL: none. */
static char *reason_of(const char *line)
{
    const char *p = strstr(line, " Reason="), *end;

    if (!p)
        return NULL;
    p += 8;
    end = p + strcspn(p, "\n");
    for (const char *q = p; (q = strstr(q, " [")) && q < end; q++)
        if (memchr(q, '@', (size_t)(end - q)))
            return xstrndup(p, (size_t)(q - p));
    return xstrndup(p, (size_t)(end - p));
}

static int state_of(const struct node_conf *c, const char *node, bool *ret_drained, char **ret_reason, struct err *err)
{
    struct str t = { 0 };
    int rc = scontrol(c, (const char *const[]){ "-o", "show", "node", node, NULL }, &t, err);
    const char *state = rc == 0 && t.len ? strstr(t.s, " State=") : NULL;

    if (rc == 0 && !state)
        rc = err_set(err, CODE_UNAVAILABLE, "'%s' tells no state of node '%s'", c->scontrol, node);
    if (rc == 0) {
        char *word = xstrndup(state + 7, strcspn(state + 7, " \n"));

        *ret_drained = strstr(word, "DRAIN") || strstr(word, "FAIL");
        *ret_reason = reason_of(t.s);
        free(word);
    }
    str_release(&t);
    return rc;
}

static int update(const struct node_conf *c, const char *node, const char *state, const char *why, struct err *err)
{
    char *name = xasprintf("NodeName=%s", node), *to = state ? xasprintf("State=%s", state) : NULL;
    char *reason = why ? xasprintf("Reason=%s", why) : NULL;
    const char *args[5] = { "update", name };
    size_t n = 2;

    if (to)
        args[n++] = to;
    if (reason)
        args[n++] = reason;
    args[n] = NULL;
    n = (size_t)scontrol(c, args, NULL, err);
    free(name);
    free(to);
    free(reason);
    return (int)n;
}

/* Every reason of ours begins with the prefix, so that nobody's else is touched. */
char *node_tell_slurm(const struct node_conf *c, const char *node, const char *why, const char *prolog, struct err *err)
{
    bool drained = false, ours, bare;
    char *reason = NULL, *text = NULL, *done = NULL;

    if (!c->scontrol || state_of(c, node, &drained, &reason, err))
        return NULL;
    ours = drained && reason && str_starts(reason, c->prefix);
    bare = drained && reason && str_eq(reason, "Prolog error") && (why || prolog); /* Slurm's words for our exit */
    text = xasprintf("%s %s", c->prefix, why ? why : prolog ? prolog : "");
    if (why && !drained) {
        if (update(c, node, "DRAIN", text, err) == 0)
            done = xasprintf("drained: %s", text);
    } else if (bare || (ours && why && !str_eq(reason, text))) {
        if (update(c, node, NULL, text, err) == 0)
            done = xasprintf("drained already; the reason is now: %s", text);
    } else if (ours && !why) {
        if (update(c, node, "RESUME", NULL, err) == 0)
            done = xasprintf("healthy again: our drain is lifted");
    } else if (drained && !ours) {
        done = xasprintf("drained by somebody else (%s): left alone", reason ? reason : "no reason");
    }
    free(text);
    free(reason);
    return done;
}
