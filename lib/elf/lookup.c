/* One symbol in one object, as glibc 2.36 elf/dl-lookup.c do_lookup_x and check_match judge it. */
#include "config.h"

#include <elf.h>
#include "elf/symbols_priv.h"

uint32_t symbol_gnu_hash(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

uint32_t symbol_sysv_hash(const char *name)
{
    uint32_t h = 0;

    for (; *name; name++) {
        h = (h << 4) + (uint8_t)*name;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    return h;
}

bool symtab_symbol(const struct symtab *t, size_t i, struct symbol *ret)
{
    const uint8_t *p = t->sym + i * (t->wide ? 24 : 16);
    uint8_t info, other;

    if (i >= t->n_sym)
        return false;
    info = p[t->wide ? 4 : 12];
    other = p[t->wide ? 5 : 13];
    *ret = (struct symbol){ .name = get32(p), .type = info & 15, .bind = info >> 4, .visibility = other & 3,
                            .section = get16(p + (t->wide ? 6 : 14)),
                            .value = t->wide ? get64(p + 8) : get32(p + 4) };
    return true;
}

const char *symtab_name(const struct symtab *t, uint32_t name)
{
    return name < t->n_str ? t->str + name : "";
}

const struct version_name *symtab_version(const struct symtab *t, size_t i, bool *ret_hidden)
{
    uint16_t v = i < t->n_versym ? get16(t->versym + 2 * i) : 0;
    size_t index = v & 0x7fff;

    *ret_hidden = (v & 0x8000) != 0;
    return index < t->versions.n && t->versions.v[index].name ? &t->versions.v[index] : NULL;
}

static bool usable(const struct symbol *x, bool call)
{
    bool type = x->type <= STT_FUNC || x->type == STT_COMMON || x->type == STT_TLS || x->type == STT_GNU_IFUNC;
    bool bind = x->bind == STB_GLOBAL || x->bind == STB_WEAK || x->bind == STB_GNU_UNIQUE;

    if (x->value == 0 && x->section != SHN_ABS && x->type != STT_TLS)
        return false;
    if (x->section == SHN_UNDEF && (call || x->type == STT_TLS))
        return false;
    return type && bind && x->visibility != STV_HIDDEN && x->visibility != STV_INTERNAL;
}

/* 1: bound; 0: not; -1: a default version that a reference without one takes when it is the only one. */
static int fits(const struct symtab *t, size_t i, const struct wanted *w)
{
    const struct version_name *v;
    struct symbol x;
    bool hidden;

    if (!symtab_symbol(t, i, &x) || !usable(&x, w->call) || !str_eq(symtab_name(t, x.name), w->name))
        return 0;
    if (!t->n_versym)
        return 1;
    v = symtab_version(t, i, &hidden);
    if (w->version)
        return (v && str_eq(v->name, w->version->name)) || (!v && !w->version->hidden && !hidden);
    if ((i < t->n_versym ? get16(t->versym + 2 * i) & 0x7fff : 0) < 3)
        return 1;
    return hidden ? 0 : -1;
}

static bool by_gnu_hash(const struct symtab *t, const struct wanted *w)
{
    uint32_t bits = t->wide ? 64 : 32, h = w->gnu_hash, i;
    size_t word = h / bits & (t->n_bloom - 1);
    uint64_t mask = t->wide ? get64(t->bloom + 8 * word) : get32(t->bloom + 4 * word);
    size_t defaults = 0;

    if (!(mask >> h % bits & mask >> (h >> t->shift) % bits & 1))
        return false;
    i = get32(t->buckets + 4 * (size_t)(h % t->n_buckets));
    for (; i >= t->first && i - t->first < t->n_chains; i++) {
        uint32_t c = get32(t->chains + 4 * (size_t)(i - t->first));

        if ((c ^ h) >> 1 == 0) {
            int fit = fits(t, i, w);

            if (fit > 0)
                return true;
            defaults += fit < 0;
        }
        if (c & 1 || i == UINT32_MAX)
            break;
    }
    return defaults == 1;
}

static bool by_sysv_hash(const struct symtab *t, const struct wanted *w)
{
    const uint8_t *chains = t->sysv + 4 * (size_t)t->n_sysv_buckets;
    uint32_t i = get32(t->sysv + 4 * (size_t)(symbol_sysv_hash(w->name) % t->n_sysv_buckets));
    size_t defaults = 0, steps = 0;

    for (; i && i < t->n_sysv && steps++ < t->n_sysv; i = get32(chains + 4 * (size_t)i)) {
        int fit = fits(t, i, w);

        if (fit > 0)
            return true;
        defaults += fit < 0;
    }
    return defaults == 1;
}

bool symtab_offers(const struct symtab *t, const struct wanted *w)
{
    if (t->n_buckets)
        return by_gnu_hash(t, w);
    return t->n_sysv_buckets && by_sysv_hash(t, w);
}
