/* The end of a run: RUN/summary.json, and who is told: a command, a mail. A hook that fails changes nothing else. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define HOOK_MS 300000.0 /* the closing job has ten minutes */

static void add_number(struct strv *env, const char *name, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    env_set(env, name, text);
}

static void hook_environment(const struct order *x, const struct run_summary *s, const char *summary, struct strv *env)
{
    for (char **e = environ; *e; e++)
        strv_add(env, *e);
    env_set(env, "RECON_RUN", run_path(x->run));
    env_set(env, "RECON_NAME", x->spec.name);
    env_set(env, "RECON_STATUS", s->exit ? "failed" : "ok");
    env_set(env, "RECON_SUMMARY", summary);
    add_number(env, "RECON_EXIT", (uint64_t)s->exit);
    add_number(env, "RECON_DATASETS", s->datasets);
    add_number(env, "RECON_DONE", s->done);
    add_number(env, "RECON_FAILED", s->failed);
    add_number(env, "RECON_SKIPPED", s->skipped);
}

static void run_hook(const char *what, const char *const *argv, char *const *env)
{
    struct child c = { .argv = argv, .env = env, .deadline_ms = HOOK_MS };
    struct err why = { 0 };

    if (child_run(&c, &why))
        cli_warn("%s: %s; the run's result is as it was", what, why.text);
    else if (c.status)
        cli_warn("%s: '%s' ended with %s %d; the run's result is as it was", what, argv[0],
                 WIFSIGNALED(c.status) ? "signal" : "status",
                 WIFSIGNALED(c.status) ? WTERMSIG(c.status) : WEXITSTATUS(c.status));
    if (c.out.len)
        fputs(c.out.s, stderr);
    if (c.errout.len)
        fputs(c.errout.s, stderr);
    str_release(&c.out);
    str_release(&c.errout);
}

/* By the site's mailer, as mail(1) and Slurm's MailProg are called: -s SUBJECT ADDRESS, the text on standard input. */
static void send_mail(const struct order *x, const struct run_summary *s, const char *summary, char *const *env)
{
    static const char script[] = "exec \"$0\" -s \"$1\" \"$2\" <\"$3\"";
    char *subject = xasprintf("recon: %s %s: %llu of %llu datasets done", x->spec.name, s->exit ? "failed" : "is done",
                              (unsigned long long)s->done, (unsigned long long)s->datasets);
    const char *argv[] = { "/bin/sh", "-c", script, x->spec.on_end.mailer, subject, x->spec.on_end.mail, summary, NULL };

    run_hook("mail", argv, env);
    free(subject);
}

static void tell(const struct order *x, const struct run_summary *s, const char *summary)
{
    struct strv env = { 0 };

    hook_environment(x, s, summary, &env);
    if (x->spec.on_end.mail && x->spec.on_end.mailer)
        send_mail(x, s, summary, env.v);
    if (x->spec.on_end.command.n)
        run_hook("on_end.command", (const char *const *)x->spec.on_end.command.v, env.v);
    strv_release(&env);
}

int run_ended(const struct order *x, const struct state *state, struct err *err)
{
    struct run_summary s = { .name = x->spec.name, .datasets = state->n, .done = state->done, .failed = state->failed,
                             .skipped = state->skipped };
    char *summary = path_join(run_path(x->run), "summary.json");
    struct str t = { 0 };
    uint64_t i = 0;
    int rc = 0;

    while (i < state->n && state->status[i] == STATE_DONE)
        i++;
    s.exit = i == state->n ? 0 : state->exit[i] ? state->exit[i] : CODE_INTERNAL;
    if (run_first(x->run, "ended")) { /* a resumed run ends again */
        run_bad_nodes(x->run, &s.bad_nodes, NULL);
        run_summary_json(x->run, &s, &t);
        rc = file_write(summary, t.s, t.len, 0666, err);
        if (rc == 0)
            tell(x, &s, summary);
    }
    str_release(&t);
    strv_release(&s.bad_nodes);
    free(summary);
    return rc ? -1 : s.exit;
}
