#include "config.h"
#include "report/report_priv.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(12) };

static json_t *made(json_t *v)
{
    if (!v)
        xmalloc(SIZE_MAX); /* ends the process as memory does everywhere */
    return v;
}

static json_t *text(const char *s)
{
    char *safe;
    json_t *v;

    if (utf8_valid(s, strlen(s)))
        return made(json_string(s));
    safe = esc_terminal(s);
    v = made(json_string(safe));
    free(safe);
    return v;
}

static json_t *count(uint64_t n)
{
    return made(json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n));
}

static json_t *real(double v)
{
    return made(isfinite(v) ? json_real(v) : json_null());
}

static void set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v);
}

static void set_text(json_t *o, const char *key, const char *s)
{
    if (s)
        set(o, key, text(s));
}

static void set_name(json_t *o, const char *name)
{
    char *b64;

    if (utf8_valid(name, strlen(name))) {
        set(o, "name", text(name));
        return;
    }
    b64 = base64_encode(name, strlen(name));
    set(o, "name_b64", text(b64));
    free(b64);
}

/* Writes and frees. */
static void put(FILE *f, const char *before, json_t *o)
{
    fputs(before, f);
    json_dumpf(o, f, FLAGS | JSON_ENCODE_ANY);
    json_decref(o);
}

static json_t *totals(const struct report *r)
{
    static const enum state order[] = { STATE_DONE, STATE_FAILED, STATE_REFUSED, STATE_SKIPPED, STATE_LOST, STATE_WAITING,
                                        STATE_CANCELLED };
    json_t *o = made(json_object());

    set(o, "datasets", count(r->n));
    for (size_t i = 0; i < COUNT(order); i++)
        set(o, name_of(state_names, (int)order[i]), count(r->totals[order[i]]));
    set(o, "attempts", count(r->attempts));
    set(o, "bad_nodes", count(r->bad_nodes));
    return o;
}

static json_t *failed_by(const struct report *r)
{
    json_t *l = made(json_array());

    for (size_t i = 0; i < r->failed_by.n; i++) {
        json_t *o = made(json_object());

        set(o, "rule", text(r->failed_by.v[i].rule));
        set(o, "count", count(r->failed_by.v[i].count));
        json_array_append_new(l, o);
    }
    return l;
}

static int put_datasets(const struct report *r, FILE *f, struct err *err)
{
    fputs(",\n\"datasets\":[", f);
    for (uint64_t i = 0; i < r->n; i++) {
        const struct report_dataset *d = &r->datasets[i];
        struct dataset about;
        json_t *o;

        if (run_dataset(r->run, i, &about, err))
            return -1;
        o = made(json_object());
        set(o, "dataset", count(i));
        set_name(o, about.name);
        dataset_release(&about);
        set(o, "status", text(name_of(state_names, (int)d->state)));
        set(o, "exit", made(json_integer(d->exit)));
        set(o, "wall_ms", real(d->wall_ms));
        set(o, "vertices", count(d->vertices));
        set(o, "faces", count(d->faces));
        set_text(o, "reason", d->reason);
        set_text(o, "rule", d->rule);
        set_text(o, "node", d->node);
        set(o, "attempts", count(d->attempts));
        put(f, i ? ",\n" : "\n", o);
    }
    fputs("]", f);
    return 0;
}

static json_t *steps(const struct report *r)
{
    json_t *l = made(json_array());

    for (size_t i = 0; i < r->steps.n; i++) {
        const struct report_step *s = &r->steps.v[i];
        json_t *o = made(json_object());

        set(o, "name", text(s->name));
        set(o, "kernel", text(s->kernel));
        set(o, "device", text(s->device));
        set(o, "runs", count(s->wall.n));
        set(o, "median_ms", real(report_median(s)));
        set(o, "min_ms", real(s->wall.v[0]));
        set(o, "max_ms", real(s->wall.v[s->wall.n - 1]));
        set(o, "total_ms", real(s->total_ms));
        set(o, "share", real(s->share));
        set(o, "device_ms", real(s->device_ms));
        set(o, "copy_ms", real(s->copy_ms));
        set(o, "share_of_peak", real(s->share_of_peak));
        json_array_append_new(l, o);
    }
    return l;
}

static json_t *texts(const struct strv *l)
{
    json_t *a = made(json_array());

    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(a, text(l->v[i]));
    return a;
}

static void put_findings(const struct report *r, FILE *f)
{
    fputs(",\n\"findings\":[", f);
    for (size_t i = 0; i < r->findings.n; i++) {
        const struct report_group *g = r->findings.v[i];
        json_t *o = made(json_object());

        set(o, "rule", text(g->rule));
        set(o, "level", text(name_of(level_names, (int)g->level)));
        set(o, "scope", text(name_of(scope_names, (int)g->scope)));
        set(o, "object", text(g->object));
        set(o, "count", count(g->count));
        set(o, "text", text(g->text));
        set_text(o, "remedy", g->remedy);
        set(o, "nodes", texts(&g->nodes));
        put(f, i ? ",\n" : "\n", o);
    }
    fputs("]", f);
}

static json_t *alarms(const struct report *r)
{
    json_t *l = made(json_array());

    for (size_t i = 0; i < r->alarms.n; i++) {
        json_t *o = made(json_object());

        set(o, "rule", text(r->alarms.v[i]->rule));
        set(o, "count", count(r->alarms.v[i]->count));
        set(o, "text", text(r->alarms.v[i]->text));
        json_array_append_new(l, o);
    }
    return l;
}

static json_t *submissions(const struct report *r)
{
    json_t *l = made(json_array());

    for (size_t i = 0; i < r->submissions.n; i++) {
        const struct submission *s = &r->submissions.v[i];
        json_t *o = made(json_object());

        set(o, "sub", count(s->sub));
        set_text(o, "backend", s->backend);
        set_text(o, "name", s->name);
        set(o, "tasks", count(s->tasks));
        set_text(o, "job_id", s->job_id);
        set_text(o, "error", s->error);
        json_array_append_new(l, o);
    }
    return l;
}

/* Written piece by piece: a run may have a million datasets. */
int write_json(const struct report *r, FILE *f, struct err *err)
{
    fputs("{\"v\":1,\"type\":\"report\"", f);
    put(f, ",\"time\":", text(r->time));
    put(f, ",\"run\":", text(run_path(r->run)));
    put(f, ",\"outputs\":", text(r->outputs));
    put(f, ",\n\"totals\":", totals(r));
    put(f, ",\n\"failed_by\":", failed_by(r));
    if (put_datasets(r, f, err))
        return -1;
    put(f, ",\n\"steps\":", steps(r));
    put_findings(r, f);
    put(f, ",\n\"alarms\":", alarms(r));
    put(f, ",\n\"submissions\":", submissions(r));
    put(f, ",\n\"damaged\":", texts(&r->damaged));
    fputs("}\n", f);
    return 0;
}
