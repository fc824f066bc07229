/* Objects as values: their texts, copies, such as are made by hand, release. */
#include "config.h"

#include <stdlib.h>
#include "elf/object_priv.h"
#include "elf/symbols_priv.h"

#define TEXTS_BLOCK ((size_t)488) /* bytes of one block of texts */

struct texts { struct texts *next; size_t used, size; char s[]; };

const char *object_text(struct object *o, const char *s, size_t n)
{
    struct texts *t = o->texts;
    char *to;

    if (!t || t->size - t->used <= n) {
        size_t size = n < TEXTS_BLOCK ? TEXTS_BLOCK : n + 1;

        t = xmalloc(sizeof(*t) + size);
        *t = (struct texts){ .next = o->texts, .size = size };
        o->texts = t;
    }
    to = t->s + t->used;
    memcpy(to, s, n);
    to[n] = '\0';
    t->used += n + 1;
    return to;
}

void object_take_version(struct object *o, const char *name, struct version_def def)
{
    strv_take(&o->versions, (char *)(uintptr_t)name);
    *VEC_ADD(&o->version_defs) = def;
}

static const char *text(struct object *o, const char *s)
{
    return object_text(o, s, strlen(s));
}

void object_copy(struct object *dst, const struct object *src)
{
    struct object o = *src;

    o.path = xstrdup(src->path);
    o.soname = xstrdup(src->soname);
    o.interp = xstrdup(src->interp);
    o.rpath = xstrdup(src->rpath);
    o.runpath = xstrdup(src->runpath);
    o.build_id = xstrdup(src->build_id);
    memset(&o.needed, 0, sizeof(o.needed));
    memset(&o.audit, 0, sizeof(o.audit));
    memset(&o.filters, 0, sizeof(o.filters));
    memset(&o.versions, 0, sizeof(o.versions));
    memset(&o.needs, 0, sizeof(o.needs));
    memset(&o.version_defs, 0, sizeof(o.version_defs));
    memset(&o.images, 0, sizeof(o.images));
    strv_copy(&o.needed, &src->needed);
    strv_copy(&o.audit, &src->audit);
    o.texts = NULL;
    for (size_t i = 0; i < src->versions.n; i++)
        strv_take(&o.versions, (char *)(uintptr_t)text(&o, src->versions.v[i]));
    for (size_t i = 0; i < src->filters.n; i++)
        *VEC_ADD(&o.filters) =
            (struct filter){ xstrdup(src->filters.v[i].name), src->filters.v[i].after, src->filters.v[i].auxiliary };
    for (size_t i = 0; i < src->needs.n; i++)
        *VEC_ADD(&o.needs) = (struct version_need){ text(&o, src->needs.v[i].file),
                                                    text(&o, src->needs.v[i].version),
                                                    src->needs.v[i].weak, src->needs.v[i].index,
                                                    src->needs.v[i].hash };
    for (size_t i = 0; i < src->version_defs.n; i++)
        *VEC_ADD(&o.version_defs) = src->version_defs.v[i];
    for (size_t i = 0; i < src->images.n; i++)
        *VEC_ADD(&o.images) = src->images.v[i];
    o.images.containers = src->images.containers;
    o.images.toolkit = xstrdup(src->images.toolkit);
    strv_copy(&o.images.hip, &src->images.hip);
    o.images.bundles = src->images.bundles;
    o.images.hip_unread = src->images.hip_unread;
    for (size_t i = 0; i < src->images.offload.n; i++) {
        *VEC_ADD(&o.images.offload) = src->images.offload.v[i];
        o.images.offload.v[i].target = xstrdup(src->images.offload.v[i].target);
    }
    *dst = o;
}

void object_add_need(struct object *o, const char *file, const char *version, bool weak)
{
    *VEC_ADD(&o->needs) = (struct version_need){ .file = text(o, file),
                                                 .version = text(o, version), .weak = weak,
                                                 .hash = symbol_sysv_hash(version) };
}

void object_add_version(struct object *o, const char *name)
{
    object_take_version(o, text(o, name), (struct version_def){ .hash = symbol_sysv_hash(name) });
}

void object_release(struct object *o)
{
    free(o->path);
    free(o->soname);
    free(o->interp);
    free(o->rpath);
    free(o->runpath);
    free(o->build_id);
    strv_release(&o->needed);
    for (size_t i = 0; i < o->filters.n; i++)
        free(o->filters.v[i].name);
    free(o->filters.v);
    strv_release(&o->audit);
    free(o->versions.v);
    free(o->version_defs.v);
    free(o->needs.v);
    for (struct texts *t = o->texts, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    images_release(&o->images);
    memset(o, 0, sizeof(*o));
}
