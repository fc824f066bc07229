#include "config.h"
#include "cli.h"
#include "cli_rules.h"
#include "cli_watch.h"
#include "launch.h"
#include "variants.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 500
#define JUDGE_MS 20000.0 /* resolving reads every library of a closure, perhaps from a slow file system */

static void not_checked(struct findings *l, const char *object, const char *why)
{
    struct finding *f = findings_add(l, "not-checked", LEVEL_NOTE, SCOPE_NODE, object, "%s", why);

    finding_explain(f, NULL, "recon could not judge; the program runs all the same", NULL);
    l->not_checked++;
}

/* ---- what the judging child sends: the number of the pin's body; per finding its level and scope, then six texts, each "+text" or "-" ---- */

static void send_text(struct str *t, const char *s)
{
    str_add(t, s ? "+" : "-");
    str_addn(t, s ? s : "", s ? strlen(s) + 1 : 1);
}

static void send_findings(struct str *t, const struct findings *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct finding *f = &l->v[i];

        str_addf(t, "F%d%d", (int)f->level, (int)f->scope);
        send_text(t, f->rule);
        send_text(t, f->object);
        send_text(t, f->text);
        send_text(t, f->cause);
        send_text(t, f->remedy);
        send_text(t, f->hint);
    }
    str_addf(t, "E%zu", l->not_checked);
    str_addn(t, "", 1);
}

/* The next text of a message that ends with a NUL; *ret points into it. */
static int take_text(const char **p, const char *end, const char **ret)
{
    const char *s = *p, *stop = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;

    if (!stop || (*s != '+' && *s != '-'))
        return -1;
    *ret = *s == '+' ? s + 1 : NULL;
    *p = stop + 1;
    return 0;
}

static int take_findings(const struct str *t, struct findings *ret, uint64_t *ret_body)
{
    const char *p = t->s, *end = t->s + t->len, *x[6];
    uint64_t n;

    if (!t->len || end[-1] || str_to_u64(p, ret_body))
        return -1;
    p += strlen(p) + 1;
    while (p + 3 < end && *p == 'F') {
        enum level level = (enum level)(p[1] - '0');
        enum scope scope = (enum scope)(p[2] - '0');

        p += 3;
        for (size_t i = 0; i < COUNT(x); i++)
            if (take_text(&p, end, &x[i]))
                return -1;
        finding_explain(findings_add(ret, x[0] ? x[0] : "not-checked", level, scope, x[1], "%s", x[2] ? x[2] : ""),
                        x[5], x[3], x[4]);
    }
    if (p >= end || *p != 'E' || end[-1] || str_to_u64(p + 1, &n))
        return -1;
    ret->not_checked += (size_t)n;
    return 0;
}

/* ---- the child ------------------------------------------------------------------------------------------------- */

/* Is this file one of the pin's programs or modules? By the path as written first, which costs no look-up. */
static bool in_pin(const struct pin *p, const char *path)
{
    char *whole = strstr(path, "..") ? NULL : path_absolute(path), *real = NULL;
    bool found = false;

    for (size_t i = 0; i < p->objects.n && !found; i++)
        found = p->objects.v[i].role != PIN_LIBRARY && str_eq(p->objects.v[i].path, whole ? whole : path);
    if (!found)
        real = realpath(path, NULL);
    for (size_t i = 0; real && i < p->objects.n && !found; i++) {
        const struct pin_object *o = &p->objects.v[i];
        char *other = o->role == PIN_LIBRARY || !o->path ? NULL : realpath(o->path, NULL);

        found = str_eq(other, real);
        free(other);
    }
    free(real);
    free(whole);
    return found;
}

/* A program that the pin does not hold has not been looked at; of a script its interpreter is what counts. */
static void check_program(const struct launch *l, struct findings *ret)
{
    char *path = l->argv[0] ? launch_program(l, NULL) : NULL, *by = NULL, *why;

    if (path && !in_pin(l->body, path)) {
        by = cli_interpreter(path, env_get(l->env.v, "PATH"));
        if (!by || !in_pin(l->body, by)) {
            why = xasprintf("'%s' is not in the pin '%s', so its libraries were not judged", by ? by : path, l->pin_path);
            not_checked(ret, by ? by : path, why);
            free(why);
        }
    }
    free(by);
    free(path);
}

/* The script that is run: the program itself, or the first argument of a shell. */
static void add_script(const struct launch *l, struct check_scripts *ret)
{
    char *path = l->argv[0] ? launch_program(l, NULL) : NULL;
    const char *name = path ? path_base(path) : "";
    char *const *arg = l->argv;

    if (path && (str_eq(name, "bash") || str_eq(name, "sh") || str_eq(name, "dash"))) {
        for (arg++; *arg && **arg == '-'; arg++)
            if (str_eq(*arg, "-c") || str_eq(*arg, "--"))
                break;
        if (*arg && **arg != '-')
            check_scripts_add(ret, *arg);
    } else if (path && !in_pin(l->body, path)) {
        check_scripts_add(ret, path);
    }
    free(path);
}

static void judge(struct launch *l, int fd)
{
    struct check_scripts scripts = { 0 };
    struct conf_map levels;
    struct variants v = { .pin = &l->pin, .root = "", .given = &l->facts, .skip = &l->skip, .symbols = resolution_symbols_changed,
                          .env = l->pin.variants.n ? environ : l->env.v,
                          .c = { .facts = &l->facts, .received = environ, .restored = true, .scripts = &scripts,
                                 .levels = &levels } };
    struct resolution r = { 0 };
    struct findings list = { 0 };
    struct str t = { 0 };
    size_t body;

    cli_levels(getenv("RECON_RULES"), &levels);
    add_script(l, &scripts);
    body = variants_judge(&v, &r, &list);
    if (body)
        launch_take(l, body);
    check_program(l, &list);
    str_addf(&t, "%zu", body);
    str_addn(&t, "", 1);
    send_findings(&t, &list);
    for (size_t done = 0; done < t.len;) {
        ssize_t n = write(fd, t.s + done, t.len - done);

        if (n < 0 && errno != EINTR)
            _exit(CODE_IO);
        done += n > 0 ? (size_t)n : 0;
    }
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------------------------ */

static void drop(char **text)
{
    free(*text);
    *text = NULL;
}

/* *ret_place (owned): nothing but waiting for this path filled the second half of the time. */
static int collect(pid_t pid, int fd, struct str *t, char **ret_place, struct err *err)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    struct still s = { 0 };
    char block[65536];
    ssize_t n;

    for (;;) {
        if (poll(&p, 1, TICK_MS) <= 0) {
            double still = still_ms(&s, pid, ret_place);

            if (s.watched >= JUDGE_MS) {
                if (still < JUDGE_MS / 2)
                    drop(ret_place);
                return err_set(err, CODE_DEADLINE, "resolving and checking took longer than %.0f s", JUDGE_MS / 1e3);
            }
            drop(ret_place);
            continue;
        }
        n = read(fd, block, sizeof(block));
        if (n == 0 || (n < 0 && errno != EINTR))
            return 0;
        if (n > 0)
            str_addn(t, block, (size_t)n);
    }
}

static bool not_answering(const struct launch *l, const char *place, struct findings *ret)
{
    struct conf_map levels;
    struct check_case c = { .facts = &l->facts, .levels = &levels };
    bool told;

    cli_levels(getenv("RECON_RULES"), &levels);
    told = check_not_answering(&c, &l->skip, place, JUDGE_MS, ret);
    conf_map_release(&levels);
    return told;
}

static int ask(struct launch *l, pid_t pid, int fd, struct findings *ret, struct err *err)
{
    char *place = NULL;
    uint64_t body = 0;
    struct str t = { 0 };
    int status = 0, rc = collect(pid, fd, &t, &place, err);

    if (rc)
        kill(pid, SIGKILL);
    /* one that sleeps in the kernel on a dead file system is not waited for */
    for (int i = 0; waitpid(pid, &status, rc ? WNOHANG : 0) == 0 && i < 50; i++)
        usleep(2000);
    if (rc == 0 && WIFSIGNALED(status))
        rc = err_set(err, CODE_INTERNAL, "resolving and checking ended with signal %d (%s), a defect of recon",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (rc == 0 && take_findings(&t, ret, &body))
        rc = err_set(err, CODE_INTERNAL, "resolving and checking ended with status %d without an answer",
                     WEXITSTATUS(status));
    if (place && not_answering(l, place, ret))
        rc = 0;
    free(place);
    if (rc == 0 && body && body < pin_bodies(&l->pin))
        launch_take(l, (size_t)body);
    str_release(&t);
    return rc;
}

void launch_judge(struct launch *l)
{
    double began = clock_ms();
    struct err err = { 0 };
    int p[2], rc = -1;
    pid_t pid = -1;

    place_share();
    if (pipe2(p, O_CLOEXEC)) {
        err_sys(&err, CODE_INTERNAL, "cannot start judging");
        not_checked(&l->findings, "launch", err.text);
        return;
    }
    pid = fork();
    if (pid == 0)
        judge(l, p[1]);
    close(p[1]);
    if (pid < 0)
        err_sys(&err, CODE_INTERNAL, "cannot start judging");
    else
        rc = ask(l, pid, p[0], &l->findings, &err);
    close(p[0]);
    if (rc)
        not_checked(&l->findings, "launch", err.text);
    l->findings.ms = clock_ms() - began;
}
