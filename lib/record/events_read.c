#include "config.h"
#include "record/record_priv.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static const struct name type_names[] = {
    { "attempt", EVENT_ATTEMPT }, { "finding", EVENT_FINDING }, { "dataset", EVENT_DATASET }, { "step", EVENT_STEP },
    { "alarm", EVENT_ALARM },     { "output", EVENT_OUTPUT },   { "end", EVENT_END },         { NULL, 0 },
};

/* What the texts of the events live in. */
struct owner {
    json_t *lines;
    struct strv **gpus;
    size_t n_gpus, cap_gpus;
    struct strv paths; /* decoded from path_b64 */
};

static const char *text_or_empty(const json_t *o, const char *key)
{
    const char *s = get_text(o, key);

    return s ? s : "";
}

static const struct strv *read_gpus(struct owner *w, const json_t *o)
{
    const json_t *list = json_object_get(o, "gpus");
    struct strv *l = xcalloc(1, sizeof(*l));

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));

        if (s)
            strv_add(l, s);
    }
    if (w->n_gpus == w->cap_gpus)
        vec_grow((void **)&w->gpus, &w->cap_gpus, sizeof(*w->gpus));
    w->gpus[w->n_gpus++] = l;
    return l;
}

static void read_attempt(struct owner *w, const json_t *o, struct event *e)
{
    e->time = text_or_empty(o, "time");
    e->attempt = (struct event_attempt){
        .sub = (uint32_t)get_u64(o, "sub"), .slot = (uint32_t)get_u64(o, "slot"),
        .attempt = (uint32_t)get_u64(o, "attempt"), .job = get_text(o, "job"), .node = text_or_empty(o, "node"),
        .gpus = read_gpus(w, o), .pin = get_text(o, "pin"), .pipeline = get_text(o, "pipeline"),
    };
}

static void read_finding(struct owner *w, const json_t *o, struct event *e)
{
    struct finding *f = &e->finding;
    int level = LEVEL_NOTE, scope = SCOPE_NODE;

    (void)w;
    name_value(level_names, text_or_empty(o, "level"), &level);
    name_value(scope_names, text_or_empty(o, "scope"), &scope);
    *f = (struct finding){ /* char *, but of the reader's */
        .rule = (char *)text_or_empty(o, "rule"), .level = (enum level)level, .scope = (enum scope)scope,
        .object = (char *)text_or_empty(o, "object"), .text = (char *)text_or_empty(o, "text"),
        .cause = (char *)get_text(o, "cause"), .remedy = (char *)get_text(o, "remedy"), .hint = (char *)get_text(o, "hint"),
    };
}

static void read_dataset(struct owner *w, const json_t *o, struct event *e)
{
    (void)w;
    e->dataset = (struct event_dataset){
        .dataset = get_u64(o, "dataset"), .status = text_or_empty(o, "status"), .exit = get_int(o, "exit"),
        .wall_ms = get_real(o, "wall_ms", 0), .vertices = get_u64(o, "vertices"), .faces = get_u64(o, "faces"),
        .reason = get_text(o, "reason"),
    };
}

static void read_step(struct owner *w, const json_t *o, struct event *e)
{
    (void)w;
    e->step = (struct event_step){
        .dataset = get_u64(o, "dataset"), .name = text_or_empty(o, "name"), .kernel = text_or_empty(o, "kernel"),
        .device = text_or_empty(o, "device"), .wall_ms = get_real(o, "wall_ms", 0), .busy_ms = get_real(o, "busy_ms", 0),
        .wait_ms = get_real(o, "wait_ms", 0), .device_ms = get_real(o, "device_ms", 0),
        .copy_ms = get_real(o, "copy_ms", 0), .bytes = get_u64(o, "bytes"), .flops = get_u64(o, "flops"),
        .items = get_u64(o, "items"), .peak_host = get_u64(o, "peak_host"), .peak_device = get_u64(o, "peak_device"),
        .share_of_peak = get_real(o, "share_of_peak", NAN),
    };
}

static void read_alarm(struct owner *w, const json_t *o, struct event *e)
{
    (void)w;
    e->alarm.dataset = get_u64(o, "dataset");
    e->alarm.rule = text_or_empty(o, "rule");
    e->alarm.text = text_or_empty(o, "text");
}

static void read_output(struct owner *w, const json_t *o, struct event *e)
{
    char *path = get_bytes(o, "path");

    strv_add(&w->paths, path ? path : "");
    free(path);
    e->output = (struct event_output){
        .dataset = get_u64(o, "dataset"), .path = w->paths.v[w->paths.n - 1], .bytes = get_u64(o, "bytes"),
        .digest = text_or_empty(o, "digest"),
    };
}

static void read_end(struct owner *w, const json_t *o, struct event *e)
{
    (void)w;
    e->end = (struct event_end){
        .status = text_or_empty(o, "status"), .exit = get_int(o, "exit"), .signal = get_int(o, "signal"),
        .done = get_u64(o, "done"), .failed = get_u64(o, "failed"), .user_ms = get_real(o, "user_ms", 0),
        .sys_ms = get_real(o, "sys_ms", 0), .max_rss = get_u64(o, "max_rss"),
    };
}

static void (*const readers[])(struct owner *, const json_t *, struct event *) = {
    [EVENT_ATTEMPT] = read_attempt, [EVENT_FINDING] = read_finding, [EVENT_DATASET] = read_dataset,
    [EVENT_STEP] = read_step,       [EVENT_ALARM] = read_alarm,     [EVENT_OUTPUT] = read_output,
    [EVENT_END] = read_end,
};

static int read_line(void *arg, json_t *o, size_t no, struct err *err)
{
    struct events_read *ret = arg;
    struct owner *w = ret->owner;
    struct event *e;
    int type;

    (void)no;
    (void)err;
    if (name_value(type_names, text_or_empty(o, "type"), &type))
        return 0;
    json_array_append(w->lines, o);
    e = VEC_ADD(ret);
    e->type = (enum event_type)type;
    e->at_ms = get_real(o, "at_ms", 0);
    readers[type](w, o, e);
    return 0;
}

int events_parse(const char *s, size_t n, const char *name, struct events_read *ret, struct err *err)
{
    struct events_read r = { 0 };
    struct owner *w = xcalloc(1, sizeof(*w));

    w->lines = json_array();
    r.owner = w;
    if (lines_each(s, n, name, &r.torn, read_line, &r, err)) {
        events_read_free(&r);
        return -1;
    }
    *ret = r;
    return 0;
}

int events_read(const char *path, struct events_read *ret, struct err *err)
{
    struct str text = { 0 };
    int rc = file_read(path, RECORD_FILE_MAX, &text, err);

    if (rc == 0)
        rc = events_parse(text.s, text.len, path, ret, err);
    str_release(&text);
    return rc;
}

void events_read_free(struct events_read *r)
{
    struct owner *w = r->owner;

    if (w) {
        json_decref(w->lines);
        for (size_t i = 0; i < w->n_gpus; i++) {
            strv_release(w->gpus[i]);
            free(w->gpus[i]);
        }
        free(w->gpus);
        strv_release(&w->paths);
        free(w);
    }
    free(r->v);
    *r = (struct events_read){ 0 };
}
