/* recon-pin verify and diff: a pin against this node, and against another pin. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include "record/record.h"
#include "recon-pin.h"

static void print_difference(const struct pin_difference *d)
{
    char *object = esc_terminal(d->object), *words = esc_terminal(d->text);

    printf("%s: %s: %s\n", d->rule, object, words);
    free(object);
    free(words);
}

/* "export NAME='value'", "unset NAME": as the pin has it. Owned. */
static char *as_pinned(const struct pin *p, const char *name)
{
    for (size_t i = 0; i < p->variables.n; i++) {
        const struct pin_variable *v = &p->variables.v[i];
        char *value, *text;

        if (!str_eq(v->name, name))
            continue;
        value = esc_shell(v->value ? v->value : "");
        text = v->how == PIN_UNSET ? xasprintf("unset %s", name) : xasprintf("export %s=%s", name, value);
        free(value);
        return text;
    }
    return xasprintf("unset %s", name);
}

static const struct cause {
    const char *rule, *cause;
    bool again; /* the pin may be what is old */
} whys[] = {
    { "env-drift", "this shell has another value than the one at capture; recon-launch restores it", false },
    { "env-not-exported", "this shell does not have what was there at capture; recon-launch restores it", false },
    { "lib-not-found", "the node lacks what the pin promised", false },
    { "lib-changed", "the file was installed anew since the capture, or another one is found before it", true },
    { "lib-corrupt", "the loader takes the first file of that name and ends there", false },
    { "preload-missing", "the node lacks a library that LD_PRELOAD names", false },
    { "symver-missing", "a library here is older than the one at capture", false },
    { "glibc-too-old", "the node's system is older than the one at capture", false },
};

static void explain(struct finding *f, const struct pin *p, const struct pin_difference *d)
{
    char host[256] = "this-node", *program = esc_shell(p->objects.n && p->objects.v[0].path ? p->objects.v[0].path : "PROGRAM");
    const char *cause = NULL;
    bool again = false;
    char *remedy;

    gethostname(host, sizeof(host) - 1);
    for (size_t i = 0; i < COUNT(whys); i++)
        if (str_eq(whys[i].rule, d->rule)) {
            cause = whys[i].cause;
            again = whys[i].again;
        }
    if (str_starts(d->rule, "env-"))
        remedy = as_pinned(p, d->object);
    else if (d->job || again)
        remedy = xasprintf("recon-pin capture -o PIN %s%s%s", program, d->job ? "" : ", or sbatch --exclude=", d->job ? "" : host);
    else
        remedy = xasprintf("sbatch --exclude=%s", host);
    finding_explain(f, NULL, d->job && d->missing ? "a changed library needs others than at capture" : cause, remedy);
    free(remedy);
    free(program);
}

static void print_findings(const struct pin *p, const struct pin_differences *l, double ms)
{
    struct findings f = { .ms = ms };
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++) {
        const struct pin_difference *d = &l->v[i];
        bool error = d->missing || str_eq(d->rule, "symver-missing") || str_eq(d->rule, "glibc-too-old");

        explain(findings_add(&f, d->rule, error ? LEVEL_ERROR : LEVEL_WARN, d->job ? SCOPE_JOB : SCOPE_NODE, d->object, "%s",
                             d->text), p, d);
    }
    findings_json(&f, &t);
    fwrite(t.s, 1, t.len, stdout);
    str_release(&t);
    findings_release(&f);
}

/* As findings_status: the node first. A variable alone is told as a difference of this node, since the launcher restores it. */
static int verify_status(const struct pin_differences *l)
{
    bool job = false, node = false;

    for (size_t i = 0; i < l->n; i++) {
        job = job || (l->v[i].job && l->v[i].missing);
        node = node || (!l->v[i].job && l->v[i].missing);
    }
    return !l->n ? 0 : job && !node ? CODE_JOB : CODE_NODE;
}

int command_verify(const struct options *o)
{
    bool jsonl = str_eq(o->format, "jsonl");
    struct pin_differences l = { 0 };
    struct resolution r = { 0 };
    double t0 = clock_ms();
    struct err err = { 0 };
    struct pin whole;
    const struct pin *p;
    int status;

    if (o->args.n != 2)
        return cli_error(CODE_USAGE, "verify: name one pin");
    if (file_trusted(o->args.v[1], NULL, &err))
        return cli_fail(&err);
    if ((status = read_body(o, o->args.v[1], &whole, &p)))
        return status;
    if (resolve(p, NULL, "", environ, &r, &err)) {
        pin_release(&whole);
        return cli_fail(&err);
    }
    pin_compare(p, &r, environ, !o->quick, &l);
    status = verify_status(&l);
    for (size_t i = 0; i < l.n && !jsonl; i++)
        print_difference(&l.v[i]);
    if (jsonl)
        print_findings(p, &l, clock_ms() - t0);
    else if (!l.n)
        printf("no difference: %zu files, %zu variables\n", p->objects.n, p->variables.n);
    pin_differences_release(&l);
    resolution_release(&r);
    pin_release(&whole);
    return status;
}

/* ---- diff ---- */

static void print_kind_json(const struct pin_difference *d, struct str *t)
{
    const struct { const char *name, *value; } keys[] = { { "kind", d->rule }, { "object", d->object }, { "text", d->text } };

    str_add(t, "{\"v\":1,\"type\":\"difference\"");
    for (size_t i = 0; i < COUNT(keys); i++) {
        str_addf(t, ",\"%s\":\"", keys[i].name);
        for (const char *s = keys[i].value; *s; s++) {
            unsigned char c = (unsigned char)*s;

            if (c == '"' || c == '\\')
                str_addf(t, "\\%c", c);
            else if (c < 0x20)
                str_addf(t, "\\u%04x", c);
            else
                str_addn(t, s, 1);
        }
        str_add(t, "\"");
    }
    str_add(t, "}\n");
}

int command_diff(const struct options *o)
{
    struct pin_differences l = { 0 };
    struct pin first = { 0 }, second = { 0 };
    const struct pin *a, *b;
    struct str t = { 0 };
    int status;

    if (o->args.n != 3)
        return cli_error(CODE_USAGE, "diff: name two pins");
    if ((status = read_body(o, o->args.v[1], &first, &a)))
        return status;
    if ((status = read_body(o, o->args.v[2], &second, &b))) {
        pin_release(&first);
        return status;
    }
    pin_diff(a, b, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (str_eq(o->format, "jsonl"))
            print_kind_json(&l.v[i], &t);
        else
            print_difference(&l.v[i]);
    }
    if (t.len)
        fwrite(t.s, 1, t.len, stdout);
    status = l.n ? 1 : 0;
    str_release(&t);
    pin_differences_release(&l);
    pin_release(&first);
    pin_release(&second);
    return status;
}
