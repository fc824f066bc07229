/* DT_VERNEED and DT_VERDEF. */
#include "config.h"

#include <stdlib.h>
#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include "elf/object_priv.h"

#define VERSIONS_FIRST ((uint64_t)4 << 10)
#define VERSIONS_MAX ((uint64_t)16 << 20)

/* The table at addr, of which the file tells no size: at most n bytes of what its segment has from there on. */
static Elf_Data *chunk(struct reading *x, uint64_t addr, Elf_Type type, uint64_t n, bool *ret_all)
{
    uint64_t off, end;

    *ret_all = true;
    if (!addr || !reading_offset(x, addr, &off, &end) || off >= x->r.size)
        return NULL;
    end = end < x->r.size ? end : x->r.size;
    *ret_all = end - off <= n;
    return elf_getdata_rawchunk(x->elf, (int64_t)off, *ret_all ? end - off : n, type);
}

/* Both readers give false when the table goes on behind d. Numbers and offsets come from the file: every step goes
 * forward and the names are counted. */
static bool take_needs(struct reading *x, Elf_Data *d)
{
    uint64_t off = 0;
    GElf_Verneed need;
    GElf_Vernaux aux;

    for (size_t i = 0; i < x->n_verneed && x->o->needs.n < NAMES_MAX; i++) {
        uint64_t a;
        char *file;
        bool inside = true;

        if (off >= d->d_size || !gelf_getverneed(d, (int)off, &need))
            return false;
        file = reading_string(x, need.vn_file);
        a = off + need.vn_aux;
        for (size_t j = 0; file && j < need.vn_cnt && x->o->needs.n < NAMES_MAX; j++) {
            char *version;

            inside = a < d->d_size && gelf_getvernaux(d, (int)a, &aux);
            if (!inside)
                break;
            version = reading_string(x, aux.vna_name);
            if (version)
                *VEC_ADD(&x->o->needs) = (struct version_need){ xstrdup(file), version, (aux.vna_flags & 2) != 0,
                                                                     aux.vna_other };
            if (!aux.vna_next)
                break;
            a += aux.vna_next;
        }
        free(file);
        if (!inside)
            return false;
        if (!need.vn_next)
            break;
        off += need.vn_next;
    }
    return true;
}

static bool take_versions(struct reading *x, Elf_Data *d)
{
    uint64_t off = 0;
    GElf_Verdef def;
    GElf_Verdaux aux;

    for (size_t i = 0; i < x->n_verdef && x->o->versions.n < NAMES_MAX; i++) {
        char *name;

        if (off >= d->d_size || !gelf_getverdef(d, (int)off, &def))
            return false;
        if (off + def.vd_aux >= d->d_size || !gelf_getverdaux(d, (int)(off + def.vd_aux), &aux))
            return false;
        name = reading_string(x, aux.vda_name);
        if (name) {
            strv_add(&x->o->versions, name);
            *VEC_ADD(&x->o->version_index) = def.vd_flags & VER_FLG_BASE ? 0 : def.vd_ndx;
        }
        free(name);
        if (!def.vd_next)
            break;
        off += def.vd_next;
    }
    return true;
}

void needs_clear(struct object *o)
{
    for (size_t i = 0; i < o->needs.n; i++) {
        free(o->needs.v[i].file);
        free(o->needs.v[i].version);
    }
    o->needs.n = 0;
}

void reading_versions(struct reading *x)
{
    bool all = false, done = false;
    Elf_Data *d;

    for (uint64_t n = VERSIONS_FIRST; x->n_verneed && !done && !all && n <= VERSIONS_MAX; n *= 16) {
        needs_clear(x->o);
        d = chunk(x, x->verneed, ELF_T_VNEED, n, &all);
        done = !d || take_needs(x, d);
    }
    all = done = false;
    for (uint64_t n = VERSIONS_FIRST; x->n_verdef && !done && !all && n <= VERSIONS_MAX; n *= 16) {
        strv_release(&x->o->versions);
        x->o->version_index.n = 0;
        d = chunk(x, x->verdef, ELF_T_VDEF, n, &all);
        done = !d || take_versions(x, d);
    }
}
