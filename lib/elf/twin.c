/* A function that is there under the same C++ name but with other arguments: the other C++ ABI, or another release. */
#include "config.h"

#include <stdlib.h>
#include <elf.h>
#include "elf/symbols_priv.h"

#define GUESSES_MAX 16
#define CANDIDATES_MAX 4096 /* demangled at most */

/* Bytes of "_ZN3c105ErrorC2E..." up to what follows its names: "_ZN3c105Error". 0: no such C++ name. */
static size_t stem(const char *name)
{
    const char *p = name;

    if (!str_starts(p, "_Z"))
        return 0;
    p += 2;
    if (*p == 'N')
        for (p++; *p == 'K' || *p == 'V' || *p == 'R' || *p == 'O'; p++)
            ;
    while (*p >= '1' && *p <= '9') {
        char *end;
        unsigned long n = strtoul(p, &end, 10);

        if (n > strlen(end))
            return 0;
        p = end + n;
    }
    return p - name >= 4 ? (size_t)(p - name) : 0;
}

/* "c10::Error::Error[abi:cxx11](" : the bytes before the arguments and ABI tags. */
static size_t name_end(const char *demangled)
{
    size_t depth = 0, i = 0;

    for (; demangled[i]; i++) {
        char c = demangled[i];

        if (depth == 0 && (c == '(' || str_starts(demangled + i, "[abi:")) && !str_starts(demangled + i, "(anonymous"))
            break;
        depth += c == '<' || c == '(' ? 1u : 0u;
        depth -= (c == '>' || c == ')') && depth ? 1u : 0u;
    }
    return i;
}

static char *twin_in(const struct symtab *t, const char *name, size_t n, const char *shown, size_t *left)
{
    size_t end = name_end(shown);
    struct symbol x;

    for (size_t i = 1; symtab_symbol(t, i, &x) && *left; i++) {
        const char *other = symtab_name(t, x.name);
        char *text;

        if (x.section == SHN_UNDEF || x.bind == STB_LOCAL || strncmp(other, name, n) || str_eq(other, name))
            continue;
        (*left)--;
        text = symbol_demangled(other);
        if (text && name_end(text) == end && strncmp(text, shown, end) == 0) {
            free(text);
            return xstrdup(other);
        }
        free(text);
    }
    return NULL;
}

static char *twin_of(struct symbols *s, const struct closure *c, const char *name, size_t n, const char *shown,
                     size_t *left, const char **ret_lib)
{
    char *twin = NULL;

    for (size_t i = c ? c->main : 0; c && i < c->libs.n && !twin; i++)
        if (c->libs.v[i].object.path && !c->libs.v[i].corrupt) {
            twin = twin_in(symtab_of(s, &c->libs.v[i].object), name, n, shown, left);
            *ret_lib = c->libs.v[i].path;
        }
    return twin;
}

char *symbols_twin(struct symbols *s, const struct closure *c, const struct closure *const *scope, const char *name,
                   const char **ret_lib)
{
    size_t n = stem(name), left = CANDIDATES_MAX;
    char *shown = n ? symbol_demangled(name) : NULL, *twin = NULL;

    if (shown)
        twin = twin_of(s, c, name, n, shown, &left, ret_lib);
    for (; shown && !twin && scope && *scope; scope++)
        twin = twin_of(s, *scope, name, n, shown, &left, ret_lib);
    free(shown);
    return twin;
}

/* ---- whose it should be ---- */

static size_t common(const struct symtab *t, const char *name)
{
    size_t best = 0;
    struct symbol x;

    for (size_t i = 1; symtab_symbol(t, i, &x); i++) {
        const char *other = symtab_name(t, x.name);
        size_t n = 0;

        if (x.section == SHN_UNDEF || x.bind == STB_LOCAL)
            continue;
        while (other[n] && other[n] == name[n])
            n++;
        best = n > best ? n : best;
    }
    return best;
}

/* "_ZN3c10" tells nothing by its first four bytes. */
static size_t least(const char *name)
{
    return str_starts(name, "_Z") ? 7 : 4;
}

void symbols_guess(struct symbols *s, const struct closure *c, struct symbol_misses *m)
{
    for (size_t i = 0; i < m->n && i < GUESSES_MAX; i++) {
        struct symbol_miss *x = &m->v[i];
        size_t best = least(x->name) - 1;

        for (size_t k = 0; k < c->edges.n && !x->file; k++) {
            const struct library *lib = &c->libs.v[c->edges.v[k].to];
            size_t n = c->edges.v[k].from == x->object && lib->object.path && !lib->corrupt
                           ? common(symtab_of(s, &lib->object), x->name)
                           : 0;

            if (n > best) {
                best = n;
                x->provider = c->edges.v[k].to;
            }
        }
    }
}
