/* fake-run RUN <SCRIPT: a stand-in for recon-submit, recon-launch and recon-run that writes a run directory with the real
 * lib/record from one command a line:
 *
 *   create LIST                    submit SUB BACKEND JOB        submit-error SUB BACKEND TEXT    intent SUB BACKEND
 *   map SUB PER_TASK DATASET...    attempt SUB SLOT NODE         bad-node NODE RULE
 *   finding LEVEL SCOPE RULE OBJECT TEXT                         alarm DATASET RULE TEXT
 *   step DATASET NAME KERNEL MS    dataset DATASET STATUS EXIT MS VERTICES FACES [REASON]
 *   publish DATASET FILE CONTENT   end STATUS EXIT SIGNAL        raw TEXT (to the events file, no newline)
 *   cancel SUB
 *
 * Words are separated by single blanks; the last one holds the rest of the line. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "record/record.h"

struct fake {
    const char *path;
    struct run *run;
    struct events *events;
    uint32_t sub, slot, attempt;
};

static uint64_t number(const char *s)
{
    uint64_t v = 0;

    if (str_to_u64(s, &v)) {
        fprintf(stderr, "fake-run: '%s' is no number\n", s);
        exit(CODE_USAGE);
    }
    return v;
}

static int do_create(struct fake *f, char **w, struct err *err)
{
    struct datasets l;

    if (datasets_load(w[0], &l, err))
        return -1;
    f->run = run_create(f->path, &l, err);
    datasets_release(&l);
    return f->run ? 0 : -1;
}

static int do_intent(struct fake *f, char **w, struct err *err)
{
    return run_submit_intent(f->run, (uint32_t)number(w[0]), w[1], "fake", 1, err);
}

static int do_submit(struct fake *f, char **w, struct err *err)
{
    return do_intent(f, w, err) || run_submit_result(f->run, (uint32_t)number(w[0]), w[2], NULL, err) ? -1 : 0;
}

static int do_submit_error(struct fake *f, char **w, struct err *err)
{
    return do_intent(f, w, err) || run_submit_result(f->run, (uint32_t)number(w[0]), NULL, w[2], err) ? -1 : 0;
}

static int do_map(struct fake *f, char **w, struct err *err)
{
    struct submap m = { .per_task = (uint32_t)number(w[1]) };
    struct strv list = { 0 };
    int rc;

    strv_split(&list, w[2], " ");
    m.n = list.n;
    m.datasets = xcalloc(list.n, sizeof(uint32_t));
    for (size_t i = 0; i < list.n; i++)
        m.datasets[i] = (uint32_t)number(list.v[i]);
    m.slots = (uint32_t)((m.n + m.per_task - 1) / m.per_task);
    rc = run_write_map(f->run, (uint32_t)number(w[0]), &m, err);
    submap_release(&m);
    strv_release(&list);
    return rc;
}

static int do_attempt(struct fake *f, char **w, struct err *err)
{
    if (f->events && events_close(f->events, err))
        return -1;
    f->sub = (uint32_t)number(w[0]);
    f->slot = (uint32_t)number(w[1]);
    f->events = run_events(f->run, f->sub, f->slot, 0, &f->attempt, err);
    if (!f->events)
        return -1;
    events_attempt(f->events, &(struct event_attempt){ .sub = f->sub, .slot = f->slot, .attempt = f->attempt,
                                                       .job = "4711_0", .node = w[2], .pin = "xxh3:a54ff53a5f1d36f1" });
    return 0;
}

static int do_bad_node(struct fake *f, char **w, struct err *err)
{
    struct finding x = { .rule = w[1], .object = w[0], .text = w[1] };

    return run_bad_node(f->run, w[0], &x, err);
}

static int do_finding(struct fake *f, char **w, struct err *err)
{
    struct finding x = { .rule = w[2], .object = w[3], .text = w[4], .remedy = (char *)"mend it" };
    int level, scope;

    if (name_value(level_names, w[0], &level) || name_value(scope_names, w[1], &scope))
        return err_set(err, CODE_USAGE, "unknown level or scope '%s %s'", w[0], w[1]);
    x.level = (enum level)level;
    x.scope = (enum scope)scope;
    events_finding(f->events, &x);
    return 0;
}

static int do_alarm(struct fake *f, char **w, struct err *err)
{
    (void)err;
    events_alarm(f->events, number(w[0]), w[1], w[2]);
    return 0;
}

static int do_step(struct fake *f, char **w, struct err *err)
{
    struct event_step s = { .dataset = number(w[0]), .name = w[1], .kernel = w[2], .device = "cpu", .share_of_peak = NAN };

    s.wall_ms = s.busy_ms = (double)number(w[3]);
    (void)err;
    events_step(f->events, &s);
    return 0;
}

static int do_dataset(struct fake *f, char **w, struct err *err)
{
    struct event_dataset d = { .dataset = number(w[0]), .status = w[1], .exit = (int)number(w[2]), .reason = w[6] };

    (void)err;
    d.wall_ms = (double)number(w[3]);
    d.vertices = number(w[4]);
    d.faces = number(w[5]);
    events_dataset(f->events, &d);
    return 0;
}

static int do_publish(struct fake *f, char **w, struct err *err)
{
    struct result x = { .dataset = number(w[0]), .sub = f->sub, .slot = f->slot, .attempt = f->attempt,
                        .pin = xstrdup("xxh3:a54ff53a5f1d36f1") };
    char *work = run_work_dir(f->run, x.dataset, f->sub, f->slot, f->attempt, err), *file;
    struct dataset d = { 0 };
    bool taken;
    int rc = -1;

    if (!work)
        return -1;
    file = path_join(work, w[1]);
    if (run_dataset(f->run, x.dataset, &d, err) == 0 && file_write(file, w[2], strlen(w[2]), 0644, err) == 0)
        rc = run_publish(f->run, work, &d, &x, &taken, err);
    for (size_t i = 0; rc == 0 && i < x.files.n; i++)
        events_output(f->events, &(struct event_output){ .dataset = x.dataset, .path = x.files.v[i].path,
                                                         .bytes = x.files.v[i].bytes, .digest = x.files.v[i].digest });
    result_release(&x);
    dataset_release(&d);
    free(file);
    free(work);
    return rc;
}

static int do_end(struct fake *f, char **w, struct err *err)
{
    (void)err;
    events_end(f->events, &(struct event_end){ .status = w[0], .exit = (int)number(w[1]), .signal = (int)number(w[2]) });
    return 0;
}

static int do_cancel(struct fake *f, char **w, struct err *err)
{
    return run_submit_cancelled(f->run, (uint32_t)number(w[0]), err);
}

static int do_raw(struct fake *f, char **w, struct err *err)
{
    if (write(events_fd(f->events), w[0], strlen(w[0])) < 0)
        return err_sys(err, CODE_IO, "cannot write");
    return 0;
}

static const struct command {
    const char *name;
    int least, words;
    int (*run)(struct fake *f, char **words, struct err *err);
} commands[] = {
    { "create", 1, 1, do_create },   { "submit", 3, 3, do_submit },     { "submit-error", 3, 3, do_submit_error },
    { "intent", 2, 2, do_intent },   { "map", 3, 3, do_map },           { "attempt", 3, 3, do_attempt },
    { "bad-node", 2, 2, do_bad_node }, { "finding", 5, 5, do_finding }, { "alarm", 3, 3, do_alarm },
    { "step", 4, 4, do_step },       { "dataset", 6, 7, do_dataset },   { "publish", 3, 3, do_publish },
    { "end", 3, 3, do_end },         { "raw", 1, 1, do_raw },
    { "cancel", 1, 1, do_cancel },
};

static int obey(struct fake *f, char *line, struct err *err)
{
    char *words[8] = { 0 }, *rest = strchr(line, ' ');
    const struct command *c = commands;
    int n = 0;

    if (rest)
        *rest++ = 0;
    while (c < commands + COUNT(commands) && !str_eq(c->name, line))
        c++;
    if (c == commands + COUNT(commands))
        return err_set(err, CODE_USAGE, "unknown command '%s'", line);
    while (rest && n < c->words) {
        words[n++] = rest;
        rest = n < c->words ? strchr(rest, ' ') : NULL;
        if (rest)
            *rest++ = 0;
    }
    if (n < c->least)
        return err_set(err, CODE_USAGE, "'%s' wants %d words", line, c->least);
    return c->run(f, words, err);
}

int main(int argc, char **argv)
{
    struct fake f = { .path = argv[1] };
    struct err err = { 0 };
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;

    if (argc != 2)
        return CODE_USAGE;
    if (access(f.path, F_OK) == 0)
        f.run = run_open(f.path, &err);
    while (rc == 0 && (n = getline(&line, &cap, stdin)) > 0) {
        line[n - 1] = line[n - 1] == '\n' ? 0 : line[n - 1];
        if (*line && *line != '#')
            rc = obey(&f, line, &err);
    }
    if (events_close(f.events, rc ? NULL : &err))
        rc = -1;
    run_free(f.run);
    free(line);
    if (rc)
        fprintf(stderr, "fake-run: %s\n", err.text);
    return rc ? err.code : 0;
}
