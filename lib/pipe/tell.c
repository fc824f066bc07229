/* Words and JSON for people and programs. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include "pipe/pipe.h"

static const struct name ptype_names[] = { { "integer", RECON_INT },   { "number", RECON_FLOAT },
                                           { "true|false", RECON_BOOL }, { "text", RECON_TEXT },
                                           { "choice", RECON_CHOICE }, { "list", RECON_VEC },
                                           { NULL, 0 } };

static const char *text_or(const char *s, const char *other)
{
    return s && *s ? s : other;
}

static void dump(json_t *j, FILE *f)
{
    char *text = json_dumps(j, JSON_INDENT(2));

    fprintf(f, "%s\n", text ? text : "null");
    free(text);
    json_decref(j);
}

/* ---- kernels ---- */

static json_t *ports_json(const struct recon_port *p)
{
    json_t *list = json_array();

    for (; p && p->name; p++)
        json_array_append_new(list, json_pack("{s:s, s:s?, s:b, s:s?}", "name", p->name, "type",
                                              name_of(slot_names, (int)p->type), "optional",
                                              (p->flags & RECON_PORT_OPTIONAL) != 0, "doc", p->doc));
    return list;
}

static json_t *params_json(const struct recon_param *p)
{
    json_t *list = json_array();

    for (; p && p->name; p++) {
        json_t *o = json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:s?}", "name", p->name, "type",
                              name_of(ptype_names, (int)p->type), "unit", p->unit, "default", p->def, "choices",
                              p->choices, "doc", p->doc);

        if (p->min != 0 || p->max != 0) {
            json_object_set_new(o, "min", json_real(p->min));
            json_object_set_new(o, "max", json_real(p->max));
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *kernel_json(const struct module *m, const struct recon_kernel *k)
{
    return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o}", "kernel", k->name, "module", m->name, "path", m->path,
                     "doc", k->doc, "in", ports_json(k->in), "out", ports_json(k->out), "params",
                     params_json(k->params));
}

void tell_kernels(const struct modules *m, bool json, FILE *f)
{
    struct table *t = table_new();
    json_t *list = json_array();

    table_columns(t, "kernel|module|in|out|what it does");
    for (size_t i = 0; i < m->n; i++) {
        const struct module *mod = &m->v[i];

        if (!mod->m) {
            table_row(t);
            table_cell(t, "(none)");
            table_cell(t, "%s", mod->name);
            table_cell(t, "%s", "");
            table_cell(t, "%s", "");
            table_cell(t, "not loaded: %s", mod->why);
        }
        for (const struct recon_kernel *const *k = mod->m ? mod->m->kernels : NULL; k && *k; k++) {
            struct str in = { 0 }, out = { 0 };

            for (const struct recon_port *p = (*k)->in; p && p->name; p++)
                str_addf(&in, "%s%s%s", in.len ? " " : "", p->name, p->flags & RECON_PORT_OPTIONAL ? "?" : "");
            for (const struct recon_port *p = (*k)->out; p && p->name; p++)
                str_addf(&out, "%s%s", out.len ? " " : "", p->name);
            table_row(t);
            table_cell(t, "%s", (*k)->name);
            table_cell(t, "%s", mod->name);
            table_cell(t, "%s", text_or(in.s, "-"));
            table_cell(t, "%s", text_or(out.s, "-"));
            table_cell(t, "%s", text_or((*k)->doc, ""));
            json_array_append_new(list, kernel_json(mod, *k));
            str_release(&in);
            str_release(&out);
        }
    }
    if (json)
        dump(json_incref(list), f);
    else
        table_print(t, f);
    json_decref(list);
    table_free(t);
}

static void ports_text(const char *head, const struct recon_port *p, FILE *f)
{
    if (!ports_count(p))
        return;
    fprintf(f, "%s\n", head);
    for (; p->name; p++)
        fprintf(f, "  %-14s %s%s%s%s%s\n", p->name, text_or(name_of(slot_names, (int)p->type), "?"),
                p->flags & RECON_PORT_OPTIONAL ? ", optional" : "", p->flags & RECON_PORT_HOST ? ", on the host" : "",
                p->doc ? ": " : "", text_or(p->doc, ""));
}

static void param_text(const struct recon_param *p, FILE *f)
{
    fprintf(f, "  %s (%s%s%s", p->name, text_or(name_of(ptype_names, (int)p->type), "?"),
            p->unit && *p->unit ? ", " : "", text_or(p->unit, ""));
    if (p->choices)
        fprintf(f, ": %s", p->choices);
    if (p->min != 0 || p->max != 0)
        fprintf(f, ", %g .. %g", p->min, p->max);
    if (!p->def)
        fprintf(f, ", must be given");
    else
        fprintf(f, ", default %s", *p->def ? p->def : "none");
    fprintf(f, ")\n      %s\n", text_or(p->doc, ""));
}

static int no_kernel(const struct modules *m, const char *name, struct err *err)
{
    struct strv names = { 0 };
    const char *near;

    for (size_t i = 0; i < m->n; i++)
        for (const struct recon_kernel *const *k = m->v[i].m ? m->v[i].m->kernels : NULL; k && *k; k++)
            strv_add(&names, (*k)->name);
    near = names.n ? str_nearest(name, names.v, sizeof(*names.v), names.n) : NULL;
    err_set(err, CODE_USAGE, "no module has the kernel '%s'%s%s%s", name,
            near ? ", the nearest is '" : "; see recon-run --list", near ? near : "", near ? "'" : "");
    strv_release(&names);
    return -1;
}

int tell_kernel(const struct modules *m, const char *name, bool json, FILE *f, struct err *err)
{
    const struct recon_kernel *first = NULL;
    json_t *list = json_array();
    struct str in = { 0 };

    for (size_t i = 0; i < m->n; i++)
        for (const struct recon_kernel *const *k = m->v[i].m ? m->v[i].m->kernels : NULL; k && *k; k++)
            if (str_eq((*k)->name, name)) {
                first = first ? first : *k;
                str_addf(&in, "%s%s", in.len ? ", " : "", m->v[i].name);
                json_array_append_new(list, kernel_json(&m->v[i], *k));
            }
    if (first && json)
        dump(json_incref(list), f);
    json_decref(list);
    if (first && !json) {
        fprintf(f, "%s: %s\nmodules: %s\n", first->name, text_or(first->doc, ""), in.s);
        ports_text("inputs", first->in, f);
        ports_text("outputs", first->out, f);
        if (params_count(first->params))
            fprintf(f, "parameters\n");
        for (const struct recon_param *p = first->params; p && p->name; p++)
            param_text(p, f);
    }
    str_release(&in);
    return first ? 0 : no_kernel(m, name, err);
}

/* ---- reports ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median over n reports of the double at offset of step i. */
static double median(const struct run_report *r, size_t n, size_t i, size_t offset)
{
    double *v = xcalloc(n + 1, sizeof(*v)), m;
    size_t have = 0;

    for (size_t k = 0; k < n; k++) {
        double x;

        if (i >= r[k].steps.n)
            continue;
        memcpy(&x, (const char *)&r[k].steps.v[i] + offset, sizeof(x));
        if (!isnan(x))
            v[have++] = x;
    }
    qsort(v, have, sizeof(*v), by_value);
    m = have ? (v[(have - 1) / 2] + v[have / 2]) / 2 : NAN;
    free(v);
    return m;
}
#define MEDIAN(member) median(r, n, i, offsetof(struct run_step, member))

void tell_report(const struct run_report *r, size_t n, FILE *f)
{
    struct table *t = table_new();
    char a[24], b[24];
    double wall = 0;

    table_columns(t, n > 1 ? "step|kernel|on|>median wall ms|>busy|>wait|>device|>copy|>of peak|>host|>device memory"
                           : "step|kernel|on|>wall ms|>busy|>wait|>device|>copy|>of peak|>host|>device memory");
    for (size_t i = 0; n && i < r[0].steps.n; i++) {
        const struct run_step *s = &r[0].steps.v[i];
        double peak = MEDIAN(share_of_peak);

        table_row(t);
        table_cell(t, "%s", s->plan->name);
        table_cell(t, "%s", s->plan->kernel->name);
        table_cell(t, "%s", s->plan->module->name);
        table_cell(t, "%.1f", MEDIAN(wall_ms));
        table_cell(t, "%.1f", MEDIAN(busy_ms));
        table_cell(t, "%.1f", MEDIAN(wait_ms));
        table_cell(t, s->plan->on_device ? "%.2f" : "-", MEDIAN(device_ms));
        table_cell(t, s->cost.copied_bytes ? "%.2f" : "-", MEDIAN(copy_ms));
        if (isnan(peak))
            table_cell(t, "-");
        else
            table_cell(t, "%.0f %%", 100 * peak);
        table_cell(t, "%s", human_bytes(s->peak_host, a));
        table_cell(t, "%s", s->plan->on_device ? human_bytes(s->peak_device, b) : "-");
        wall += MEDIAN(wall_ms);
    }
    table_print(t, f);
    table_free(t);
    if (n)
        fprintf(f, "%s in all%s\n", human_ms(n > 1 ? wall : r[0].wall_ms, a), n > 1 ? ", the sum of the medians" : "");
}
#undef MEDIAN

static json_t *real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *count(uint64_t v)
{
    return json_integer((json_int_t)v);
}

static json_t *step_json(const struct run_step *s)
{
    const struct plan_step *p = s->plan;

    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", p->name,
                     "kernel", p->kernel->name, "module", p->module->name, "wall_ms", real_or_null(s->wall_ms),
                     "busy_ms", real_or_null(s->busy_ms), "wait_ms", real_or_null(s->wait_ms), "device_ms",
                     real_or_null(s->device_ms), "copy_ms", real_or_null(s->copy_ms), "copied_bytes",
                     count(s->cost.copied_bytes), "bytes", count(s->cost.moved_bytes), "flops", count(s->cost.flops),
                     "items", count(s->cost.items), "peak_host", count(s->peak_host), "peak_device",
                     count(s->peak_device), "share_of_peak", real_or_null(s->share_of_peak));
}

static char *finished(json_t *o)
{
    char *text = json_dumps(o, JSON_INDENT(2));
    char *own = xstrdup(text ? text : "{}");

    free(text);
    json_decref(o);
    return own;
}

char *report_json(const struct pipeline *p, const struct device *d, const struct run_report *r, size_t n)
{
    json_t *runs = json_array();

    for (size_t k = 0; k < n; k++) {
        json_t *steps = json_array(), *outputs = json_array();

        for (size_t i = 0; i < r[k].steps.n; i++)
            json_array_append_new(steps, step_json(&r[k].steps.v[i]));
        for (size_t i = 0; i < r[k].outputs.n; i++) {
            json_t *path = json_string(r[k].outputs.v[i]);

            json_array_append_new(outputs, path ? path : json_null());
        }
        json_array_append_new(runs, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "wall_ms", json_real(r[k].wall_ms),
                                              "vertices", count(r[k].vertices), "faces", count(r[k].faces),
                                              "warnings", count(r[k].warnings), "steps", steps, "outputs", outputs));
    }
    return finished(json_pack("{s:i, s:s, s:s, s:s, s:o}", "v", 1, "type", "report", "pipeline", p->name, "device",
                              d->name, "runs", runs));
}

/* ---- estimates ---- */

void tell_estimate(const struct estimate *e, FILE *f)
{
    struct table *t = table_new();
    char a[24], b[24];
    double ms = 0;

    table_columns(t, "step|kernel|on|>host at most|>device at most|>traffic|>Gflop|>about");
    for (size_t i = 0; i < e->steps.n; i++) {
        const struct estimate_step *s = &e->steps.v[i];

        table_row(t);
        table_cell(t, "%s", s->plan->name);
        table_cell(t, "%s", s->plan->kernel->name);
        table_cell(t, "%s", s->plan->module->name);
        if (!s->known) {
            for (int c = 0; c < 5; c++)
                table_cell(t, c == 4 ? "known when it runs" : "-");
            continue;
        }
        table_cell(t, "%s", human_bytes(s->cost.host_bytes, a));
        table_cell(t, "%s", human_bytes(s->cost.device_bytes, a));
        table_cell(t, "%s", human_bytes(s->cost.moved_bytes, a));
        table_cell(t, "%.2f", (double)s->cost.flops / 1e9);
        table_cell(t, "%s", isnan(s->ms) ? "-" : human_ms(s->ms, a));
        ms += isnan(s->ms) ? 0 : s->ms;
    }
    table_print(t, f);
    table_free(t);
    fprintf(f, "at most %s of host and %s of device memory at once; about %s without reading and waiting\n",
            human_bytes(e->peak_host, a), human_bytes(e->peak_device, b), human_ms(ms, (char[24]){ 0 }));
}

char *estimate_json(const struct pipeline *p, const struct device *d, const struct estimate *e)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < e->steps.n; i++) {
        const struct estimate_step *s = &e->steps.v[i];

        json_array_append_new(
            steps, json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "name", s->plan->name, "kernel",
                             s->plan->kernel->name, "module", s->plan->module->name, "known", (int)s->known,
                             "host_bytes", count(s->cost.host_bytes), "device_bytes", count(s->cost.device_bytes),
                             "bytes", count(s->cost.moved_bytes), "flops", count(s->cost.flops), "about_ms",
                             real_or_null(s->ms)));
    }
    return finished(json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:o}", "v", 1, "type", "estimate", "pipeline", p->name,
                              "device", d->name, "peak_host", count(e->peak_host), "peak_device",
                              count(e->peak_device), "steps", steps));
}
