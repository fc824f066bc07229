#include "config.h"

#include <stdlib.h>
#include "pipe/pipe.h"

const struct name slot_names[] = { { "frames", RECON_FRAMES }, { "points", RECON_POINTS },
                                   { "volume", RECON_VOLUME }, { "mesh", RECON_MESH },
                                   { "image", RECON_IMAGE },   { NULL, 0 } };

/* What the functions below pass around. */
struct planning {
    const struct pipeline *p;
    const struct modules *m;
    const struct device *d;
    struct plan *plan;
};

static const char *type_name(uint32_t type)
{
    const char *name = name_of(slot_names, (int)type);

    return name ? name : "unknown";
}

/* ---- kernels ---- */

static int unknown_kernel(const struct planning *x, const struct step *s, struct err *err)
{
    struct strv names = { 0 };
    const struct module *broken = NULL;
    const char *near;

    for (size_t i = 0; i < x->m->n; i++) {
        if (!x->m->v[i].m)
            broken = &x->m->v[i];
        for (const struct recon_kernel *const *k = x->m->v[i].m ? x->m->v[i].m->kernels : NULL; k && *k; k++)
            strv_add(&names, (*k)->name);
    }
    near = names.n ? str_nearest(s->kernel, names.v, sizeof(*names.v), names.n) : NULL;
    err_set(err, broken ? CODE_NODE : CODE_USAGE, "%s:%d: step '%s': no module has the kernel '%s'%s%s%s%s%s%s%s",
            x->p->path, s->line, s->name, s->kernel, near ? ", the nearest is '" : "; see recon-run --list",
            near ? near : "", near ? "'" : "", broken ? "; module '" : "", broken ? broken->name : "",
            broken ? "' was not loaded: " : "", broken ? broken->why : "");
    strv_release(&names);
    return -1;
}

/* ---- parameters ---- */

/* Where the parameter was said: the origin that pipeline_set was told, else file and line. Owned. */
static char *place_of(const struct planning *x, const struct step *s, const struct conf_pair *pair)
{
    const char *origin = conf_map_get(&s->origins, pair->name);

    return origin ? xstrdup(origin) : xasprintf("%s:%d", x->p->path, pair->line ? pair->line : s->line);
}

static int unknown_param(const struct planning *x, const struct step *s, const struct recon_kernel *k,
                         const struct conf_pair *pair, struct err *err)
{
    uint32_t n = params_count(k->params);
    const char *near = n ? str_nearest(pair->name, &k->params[0].name, sizeof(*k->params), n) : NULL;

    char *place = place_of(x, s, pair);

    err_set(err, CODE_USAGE, "%s: step '%s': kernel '%s' has no parameter '%s'%s%s%s", place, s->name, k->name,
            pair->name, near ? ", the nearest is '" : "; see recon-run --describe", near ? near : "", near ? "'" : "");
    free(place);
    return -1;
}

static const struct conf_pair *pair_of(const struct conf_map *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].name, name))
            return &m->v[i];
    return NULL;
}

static int bind_param(const struct planning *x, const struct step *s, const struct recon_kernel *k,
                      const struct recon_param *row, struct recon_value *ret, struct err *err)
{
    const struct conf_pair *pair = pair_of(&s->params, row->name);
    struct err why = { 0 };
    char *place;
    int rc;

    if (!pair && !row->def)
        return err_set(err, CODE_USAGE, "%s:%d: step '%s': kernel '%s' needs the parameter '%s': %s", x->p->path,
                       s->line, s->name, k->name, row->name, row->doc ? row->doc : "");
    rc = pair ? value_parse(row, pair->value, pair->kind, pair->line == 0, ret, &why)
              : value_parse(row, row->def, CONF_KIND_TEXT, true, ret, &why);
    if (rc == 0)
        return 0;
    if (!pair)
        return err_set(err, CODE_JOB, "kernel '%s': the default of parameter '%s' is refused: %s", k->name, row->name,
                       why.text);
    place = place_of(x, s, pair);
    err_set(err, why.code, "%s: step '%s': parameter '%s': %s", place, s->name, row->name, why.text);
    free(place);
    return -1;
}

static int bind_params(const struct planning *x, const struct step *s, struct plan_step *ps, struct err *err)
{
    const struct recon_param *rows = ps->kernel->params;

    ps->n_params = params_count(rows);
    ps->values = xcalloc(ps->n_params + 1, sizeof(*ps->values));
    for (size_t i = 0; i < s->params.n; i++) {
        uint32_t j = 0;

        while (j < ps->n_params && !str_eq(rows[j].name, s->params.v[i].name))
            j++;
        if (j == ps->n_params)
            return unknown_param(x, s, ps->kernel, &s->params.v[i], err);
    }
    for (uint32_t j = 0; j < ps->n_params; j++)
        if (bind_param(x, s, ps->kernel, &rows[j], &ps->values[j], err))
            return -1;
    return 0;
}

/* ---- slots ---- */

static int check_renames(const struct planning *x, const struct step *s, const struct recon_kernel *k,
                         const struct conf_map *names, const struct recon_port *ports, const char *side,
                         struct err *err)
{
    uint32_t n = ports_count(ports);

    for (size_t i = 0; i < names->n; i++) {
        const struct conf_pair *pair = &names->v[i];
        const char *near;
        uint32_t j = 0;

        while (j < n && !str_eq(ports[j].name, pair->name))
            j++;
        near = j == n && n ? str_nearest(pair->name, &ports[0].name, sizeof(*ports), n) : NULL;
        if (j == n)
            return err_set(err, CODE_USAGE, "%s:%d: step '%s': kernel '%s' has no %s port '%s'%s%s%s", x->p->path,
                           pair->line, s->name, k->name, side, pair->name, near ? ", the nearest is '" : "",
                           near ? near : "", near ? "'" : "");
        if (pair->kind != CONF_KIND_TEXT || !*pair->value)
            return err_set(err, CODE_USAGE, "%s:%d: step '%s': '%s' wants the name of a slot in quotes", x->p->path,
                           pair->line, s->name, pair->name);
    }
    return 0;
}

static int missing_slot(const struct planning *x, const struct step *s, const struct recon_port *port,
                        const char *slot, struct err *err)
{
    struct str have = { 0 };

    for (size_t i = 0; i < x->plan->slots.n; i++)
        str_addf(&have, "%s'%s' (%s)", i ? ", " : "; there are: ", x->plan->slots.v[i].name,
                 type_name(x->plan->slots.v[i].type));
    err_set(err, CODE_USAGE, "%s:%d: step '%s' needs '%s' (%s), which no step before it gives%s", x->p->path, s->line,
            s->name, slot, type_name(port->type), have.s ? have.s : "");
    str_release(&have);
    return -1;
}

static int bind_input(const struct planning *x, const struct step *s, int at, const struct recon_port *port,
                      int *ret, struct err *err)
{
    const char *name = conf_map_get(&s->in, port->name);
    bool asked = name != NULL;

    name = name ? name : port->name;
    for (size_t i = x->plan->slots.n; i-- > 0;) {
        struct plan_slot *slot = &x->plan->slots.v[i];

        if (!str_eq(slot->name, name))
            continue;
        if (slot->type != port->type)
            return err_set(err, CODE_USAGE, "%s:%d: step '%s' needs '%s' as %s, step '%s' gives %s", x->p->path,
                           s->line, s->name, name, type_name(port->type), x->plan->steps.v[slot->producer].name,
                           type_name(slot->type));
        slot->last_use = at;
        *ret = (int)i;
        return 0;
    }
    *ret = -1;
    if ((port->flags & RECON_PORT_OPTIONAL) && !asked)
        return 0;
    return missing_slot(x, s, port, name, err);
}

static int bind_ports(const struct planning *x, const struct step *s, int at, struct plan_step *ps, struct err *err)
{
    const struct recon_kernel *k = ps->kernel;

    ps->n_in = ports_count(k->in);
    ps->n_out = ports_count(k->out);
    ps->in = xcalloc(ps->n_in + 1, sizeof(int));
    ps->out = xcalloc(ps->n_out + 1, sizeof(int));
    if (check_renames(x, s, k, &s->in, k->in, "input", err) || check_renames(x, s, k, &s->out, k->out, "output", err))
        return -1;
    for (uint32_t i = 0; i < ps->n_in; i++)
        if (bind_input(x, s, at, &k->in[i], &ps->in[i], err))
            return -1;
    for (uint32_t i = 0; i < ps->n_out; i++) {
        const char *name = conf_map_get(&s->out, k->out[i].name);
        struct plan_slot *slot = VEC_ADD(&x->plan->slots);

        slot->name = xstrdup(name ? name : k->out[i].name);
        slot->type = (enum recon_slot)k->out[i].type;
        slot->producer = slot->last_use = at;
        ps->out[i] = (int)(x->plan->slots.n - 1);
        if (!name_of(slot_names, (int)slot->type))
            return err_set(err, CODE_JOB, "kernel '%s': its output '%s' has the unknown type %u", k->name,
                           k->out[i].name, (unsigned)k->out[i].type);
    }
    return 0;
}

/* The step by the module 'cpu', with the same names, values and slots, where the device's module leaves some inputs to it. */
static void add_host(const struct planning *x, struct plan_step *s)
{
    const struct module *cpu = modules_named(x->m, "cpu"), *found;
    const struct recon_kernel *k = s->on_device && s->module->m->elsewhere && cpu && cpu->m ? modules_kernel(x->m, cpu, s->kernel->name, &found) : NULL;

    if (!k || found != cpu || params_count(k->params) != s->n_params || ports_count(k->in) != s->n_in || ports_count(k->out) != s->n_out)
        return;
    for (uint32_t i = 0; i < s->n_params; i++)
        if (!str_eq(k->params[i].name, s->kernel->params[i].name))
            return;
    s->host = xmalloc(sizeof(*s->host));
    *s->host = *s;
    s->host->kernel = k;
    s->host->module = cpu;
    s->host->on_device = false;
    s->host->host = NULL;
}

int plan_make(const struct pipeline *p, const struct modules *m, const struct device *d, struct plan *ret,
              struct err *err)
{
    struct planning x = { p, m, d, ret };

    *ret = (struct plan){ 0 };
    for (size_t i = 0; i < p->steps.n; i++) {
        const struct step *s = &p->steps.v[i];
        struct plan_step *ps = VEC_ADD(&ret->steps);

        ps->name = xstrdup(s->name);
        ps->kernel = modules_kernel(m, d->module, s->kernel, &ps->module);
        if (!ps->kernel) {
            unknown_kernel(&x, s, err);
            break;
        }
        ps->on_device = ps->module->m->device != NULL;
        if (bind_params(&x, s, ps, err) || bind_ports(&x, s, (int)i, ps, err))
            break;
        add_host(&x, ps);
        if (i + 1 == p->steps.n)
            return 0;
    }
    plan_release(ret);
    return -1;
}

void plan_release(struct plan *p)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        struct plan_step *s = &p->steps.v[i];

        for (uint32_t j = 0; j < s->n_params && s->values; j++)
            value_release(&s->kernel->params[j], &s->values[j]);
        free(s->values);
        free(s->in);
        free(s->out);
        free(s->name);
        free(s->host);
    }
    for (size_t i = 0; i < p->slots.n; i++)
        free(p->slots.v[i].name);
    free(p->steps.v);
    free(p->slots.v);
    *p = (struct plan){ 0 };
}
