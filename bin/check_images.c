#include "config.h"

#include <stdlib.h>
#include "check_images.h"
#include "cli.h"
#include "pin/pin.h"

struct row { /* texts are lists, with blanks for people, as JSON arrays else */
    int64_t containers;
    struct strv sass, ptx, lto;
    const char *isa, *toolkit, *what;
};
struct sheet { struct table *t; bool jsonl; size_t rows; };

static void join(const struct strv *l, bool jsonl, struct str *t)
{
    const char *quote = jsonl ? "\"" : "", *comma = jsonl ? "," : " ";

    str_clear(t);
    str_add(t, jsonl ? "[" : l->n ? "" : "-");
    for (size_t i = 0; i < l->n; i++)
        str_addf(t, "%s%s%s%s", i ? comma : "", quote, l->v[i], quote);
    str_add(t, jsonl ? "]" : "");
}

static void put(struct sheet *s, const struct row *r)
{
    struct str sass = { 0 }, ptx = { 0 }, lto = { 0 };

    join(&r->sass, s->jsonl, &sass);
    join(&r->ptx, s->jsonl, &ptx);
    join(&r->lto, s->jsonl, &lto);
    if (s->jsonl) {
        printf("{\"v\":1,\"type\":\"images\",\"containers\":%lld,\"sass\":%s,\"ptx\":%s,\"lto\":%s,\"ptx_isa\":\"%s\","
               "\"toolkit\":\"%s\",\"what\":\"%s\"}\n", (long long)r->containers, sass.s, ptx.s, lto.s, r->isa ? r->isa : "",
               r->toolkit ? r->toolkit : "", r->what);
    } else {
        table_row(s->t);
        table_cell(s->t, "%lld", (long long)r->containers);
        table_cell(s->t, "%s", sass.s);
        table_cell(s->t, "%s", ptx.s);
        table_cell(s->t, "%s", lto.s);
        table_cell(s->t, "%s", r->isa ? r->isa : "-");
        table_cell(s->t, "%s", r->toolkit ? r->toolkit : "-");
        table_cell(s->t, "%s", r->what);
    }
    s->rows++;
    str_release(&sass);
    str_release(&ptx);
    str_release(&lto);
}

static void release(struct row *r)
{
    strv_release(&r->sass);
    strv_release(&r->ptx);
    strv_release(&r->lto);
}

/* ---- every container as it is stored ---- */

static void add_image(struct row *r, const struct gpu_image *g, char isa[16], unsigned *toolkit)
{
    struct strv *l = g->kind == IMAGE_SASS ? &r->sass : g->kind == IMAGE_PTX ? &r->ptx : &r->lto;

    strv_addf(l, "%s_%u%.1s", g->kind == IMAGE_SASS ? "sm" : g->kind == IMAGE_PTX ? "compute" : "lto", g->arch,
              g->suffix == 'a' ? "a" : g->suffix == 'f' ? "f" : "");
    if (g->kind == IMAGE_PTX) {
        snprintf(isa, 16, "%u.%u", g->major, g->minor);
        r->isa = isa;
    }
    *toolkit = g->toolkit > *toolkit ? g->toolkit : *toolkit;
    r->what = g->link_stub ? "link stub" : g->relocatable ? "relocatable" : r->what;
}

static void each_container(struct sheet *s, const struct gpu_images *l)
{
    for (size_t i = 0; i < l->n;) {
        struct row r = { .containers = l->v[i].container, .what = "" };
        char isa[16], text[16];
        unsigned toolkit = 0;

        for (; i < l->n && l->v[i].container == (uint32_t)r.containers; i++)
            add_image(&r, &l->v[i], isa, &toolkit);
        snprintf(text, sizeof(text), "%u.%u", toolkit / 10, toolkit % 10);
        r.toolkit = toolkit ? text : NULL;
        put(s, &r);
        release(&r);
    }
}

/* ---- as they are judged ---- */

/* LTO-IR is no code that a driver loads: a row of its own. */
static void lto_row(struct sheet *s, const struct gpu_images *l)
{
    struct row r = { .what = "for nvJitLink at run time" };

    for (size_t i = 0; i < l->n; i++) {
        char name[32];

        if (l->v[i].kind != IMAGE_LTO)
            continue;
        snprintf(name, sizeof(name), "lto_%u", l->v[i].arch);
        if (!strv_has(&r.lto, name))
            strv_add(&r.lto, name);
        r.containers += i == 0 || l->v[i - 1].container != l->v[i].container || l->v[i - 1].kind != IMAGE_LTO;
    }
    if (r.containers)
        put(s, &r);
    release(&r);
}

static void sets(struct sheet *s, const struct gpu_images *l)
{
    struct pin_gpus all = { 0 };

    pin_gpu_sets(l, &all);
    for (size_t i = 0; i < all.n; i++) {
        const struct pin_gpu *g = &all.v[i];

        put(s, &(struct row){ g->containers, g->sass, g->ptx, { 0 }, g->ptx_isa, g->toolkit, "" });
    }
    pin_gpus_release(&all);
    lto_row(s, l);
}

/* ---- clang's offload binaries: a row for each producer ---- */

static void offload_row(struct sheet *s, const struct offload_images *l, enum offload_producer producer)
{
    static const char *const what[] = { [OFFLOAD_OPENMP] = "OpenMP", [OFFLOAD_CUDA] = "CUDA by clang, not linked",
                                        [OFFLOAD_HIP] = "HIP, not linked", [OFFLOAD_SYCL] = "SYCL" };
    struct row r = { .what = what[producer] };

    for (size_t i = 0; i < l->n; i++) {
        const struct offload_image *o = &l->v[i];

        if (o->producer != producer)
            continue;
        strv_add(o->form == OFFLOAD_CODE ? &r.sass : o->form == OFFLOAD_PTX ? &r.ptx : &r.lto, o->target);
        r.containers += o->count;
    }
    if (r.containers)
        put(s, &r);
    release(&r);
}

int check_images(const char *path, bool each, bool jsonl)
{
    struct sheet s = { .jsonl = jsonl };
    struct gpu_images l = { 0 };
    struct err err = { 0 };

    if (images_read(path, &l, &err))
        return cli_fail(&err);
    s.t = table_new();
    table_columns(s.t, each ? ">container|SASS|PTX|LTO|PTX ISA|toolkit|what" : ">containers|SASS|PTX|LTO|PTX ISA|toolkit|what");
    if (each)
        each_container(&s, &l);
    else
        sets(&s, &l);
    if (l.bundles)
        put(&s, &(struct row){ l.bundles, l.hip, { 0 }, { 0 }, NULL, NULL,
                               l.hip_unread ? "HIP, some compressed and not read" : "HIP" });
    for (int i = OFFLOAD_OPENMP; i <= OFFLOAD_SYCL; i++)
        offload_row(&s, &l.offload, (enum offload_producer)i);
    if (!jsonl && s.rows)
        table_print(s.t, stdout);
    if (!s.rows)
        fprintf(stderr, "'%s' holds no GPU code\n", path);
    table_free(s.t);
    images_release(&l);
    return 0;
}
