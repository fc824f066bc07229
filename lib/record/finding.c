#include "config.h"
#include "record/record_priv.h"

#include <stdlib.h>

const struct name level_names[] = { { "note", LEVEL_NOTE }, { "warn", LEVEL_WARN }, { "error", LEVEL_ERROR }, { NULL, 0 } };
const struct name scope_names[] = { { "node", SCOPE_NODE }, { "job", SCOPE_JOB }, { "data", SCOPE_DATA }, { NULL, 0 } };

struct finding *findings_add(struct findings *l, const char *rule, enum level level, enum scope scope,
                             const char *object, const char *fmt, ...)
{
    struct finding *f = VEC_ADD(l);
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = xstrdup(fmt);
    va_end(ap);
    *f = (struct finding){ .rule = xstrdup(rule), .level = level, .scope = scope, .object = xstrdup(object), .text = text };
    return f;
}

static void replace(char **at, const char *s)
{
    if (s) {
        free(*at);
        *at = xstrdup(s);
    }
}

void finding_explain(struct finding *f, const char *hint, const char *cause, const char *remedy)
{
    replace(&f->hint, hint);
    replace(&f->cause, cause);
    replace(&f->remedy, remedy);
}

size_t findings_count(const struct findings *l, enum level level)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        n += l->v[i].level == level;
    return n;
}

int findings_status(const struct findings *l)
{
    bool has[SCOPE_DATA + 1] = { 0 };

    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].level == LEVEL_ERROR)
            has[l->v[i].scope] = true;
    if (has[SCOPE_NODE])
        return CODE_NODE;
    if (has[SCOPE_JOB])
        return CODE_JOB;
    return has[SCOPE_DATA] ? CODE_DATA : CODE_OK;
}

void findings_release(struct findings *l)
{
    for (size_t i = 0; i < l->n; i++) {
        struct finding *f = &l->v[i];
        char *texts[] = { f->rule, f->object, f->text, f->cause, f->remedy, f->hint };

        for (size_t k = 0; k < COUNT(texts); k++)
            free(texts[k]);
    }
    free(l->v);
    *l = (struct findings){ 0 };
}

/* Also the tail of a "finding" event. */
void finding_keys(struct json_t *o, const struct finding *f)
{
    put_text(o, "rule", f->rule);
    put_text(o, "level", name_of(level_names, (int)f->level));
    put_text(o, "scope", name_of(scope_names, (int)f->scope));
    put_text(o, "object", f->object ? f->object : "");
    put_text(o, "text", f->text ? f->text : "");
    put_text(o, "cause", f->cause);
    put_text(o, "remedy", f->remedy);
    put_text(o, "hint", f->hint);
}

void findings_json(const struct findings *l, struct str *ret)
{
    size_t errors = findings_count(l, LEVEL_ERROR), warnings = findings_count(l, LEVEL_WARN);
    struct json_t *o;

    for (size_t i = 0; i < l->n; i++) {
        o = line_new("finding");
        finding_keys(o, &l->v[i]);
        line_end(o, ret);
    }
    o = line_new("summary");
    put_text(o, "status", errors ? "error" : warnings ? "warn" : "ok");
    put_u64(o, "errors", errors);
    put_u64(o, "warnings", warnings);
    put_u64(o, "not_checked", l->not_checked);
    put_ms(o, "ms", l->ms);
    line_end(o, ret);
}

void library_json(const struct library_line *l, struct str *ret)
{
    struct json_t *o = line_new("library");

    put_text(o, "soname", l->soname);
    put_text_or_null(o, "path", l->path);
    put_text_or_null(o, "why", l->why);
    put_text_or_null(o, "needed_by", l->needed_by);
    if (l->optional)
        put_true(o, "optional");
    line_end(o, ret);
}

void may_dlopen_json(const struct may_dlopen_line *l, struct str *ret)
{
    struct json_t *o = line_new("may-dlopen");

    put_texts(o, "names", l->names);
    put_text_or_null(o, "path", l->path);
    put_text(o, "by", l->by);
    put_text(o, "feature", l->feature);
    put_text(o, "priority", l->priority);
    line_end(o, ret);
}

/* ---- for people ---- */

static void add_safe(struct str *ret, const char *before, const char *s, const char *after)
{
    char *safe;

    if (!s || !*s)
        return;
    safe = esc_terminal(s);
    str_addf(ret, "%s%s%s", before, safe, after);
    free(safe);
}

void findings_text(const struct findings *l, bool verbose, bool colour, struct str *ret)
{
    static const char *const colours[] = { [LEVEL_NOTE] = "\033[36m", [LEVEL_WARN] = "\033[33m", [LEVEL_ERROR] = "\033[31m" };

    for (size_t i = 0; i < l->n; i++) {
        const struct finding *f = &l->v[i];

        if (f->level == LEVEL_NOTE && !verbose)
            continue;
        str_addf(ret, "%s%s:%s ", colour ? colours[f->level] : "", name_of(level_names, (int)f->level),
                 colour ? "\033[0m" : "");
        add_safe(ret, "", f->rule, ": ");
        add_safe(ret, "", f->object, ": ");
        add_safe(ret, "", f->text, "");
        add_safe(ret, " [", f->hint, "]");
        str_add(ret, "\n");
        add_safe(ret, "    cause: ", f->cause, "\n");
        add_safe(ret, "    remedy: ", f->remedy, "\n");
    }
}
