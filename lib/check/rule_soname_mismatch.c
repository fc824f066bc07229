#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Where the version begins: after ".so."; the end if there is none. */
static const char *version_of(const char *soname)
{
    const char *so = strstr(soname, ".so");

    return !so ? soname + strlen(soname) : so[3] == '.' ? so + 4 : so + 3;
}

/* 11.0 and 12 conflict; 7.0 and 7, or none and 3, do not. */
static bool conflict(const char *a, const char *b)
{
    size_t n = strcspn(a, "."), m = strcspn(b, ".");

    if (!*a || !*b)
        return false;
    if (n != m || strncmp(a, b, n) != 0)
        return true;
    return conflict(a[n] ? a + n + 1 : "", b[m] ? b + m + 1 : "");
}

static bool same_stem(const char *a, const char *b)
{
    size_t n = (size_t)(version_of(a) - a);

    return n == (size_t)(version_of(b) - b) && strncmp(a, b, n) == 0;
}

static void passes_for_another(const struct check_case *c, const struct walk *w, struct findings *out)
{
    const struct library *l = w->lib;
    const char *is = l->object.soname, *asked = path_base(l->soname);
    const char *theirs, *own;
    char *quoted, *remedy;
    bool vendors;

    if (!is || str_eq(is, asked))
        return;
    theirs = vendor_of(c, asked);
    own = vendor_of(c, is);
    vendors = theirs && own && !str_eq(theirs, own);
    if (!vendors && (!same_stem(is, asked) || !conflict(version_of(is), version_of(asked))))
        return;
    quoted = esc_shell(l->path);
    remedy =
        vendors
            ? xasprintf("rm %s, and take a build of '%s' for %s", quoted, needer(w->in, l), own)
            : xasprintf(
                  "rm %s, and put the folder of the real '%s' (its toolkit's module) into LD_LIBRARY_PATH",
                  quoted, asked);
    finding_explain(findings_add(out, "soname-mismatch", LEVEL_ERROR, SCOPE_JOB, l->path,
                                 "'%s' asks for '%s', and this file is '%s' by its SONAME%s%s%s%s%s",
                                 needer(w->in, l), asked, is, vendors ? " (" : "", vendors ? own : "",
                                 vendors ? "'s, not " : "", vendors ? theirs : "", vendors ? "'s)" : ""),
                    NULL, "a link with the wanted name was made to what is installed", remedy);
    free(remedy);
    free(quoted);
}

static bool same_file(const struct library *a, const struct library *b)
{
    return str_eq(a->path, b->path) ||
           (a->object.ino && a->object.ino == b->object.ino && a->object.dev == b->object.dev);
}

/* Of no text: 0. */
static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;

    for (; s && *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return s ? h : 0;
}

/* One SONAME in one process by two files: both have their own state. */
static void loaded_twice(const struct closure *in, struct findings *out)
{
    uint32_t *hashes = xcalloc(in->libs.n, sizeof(*hashes));
    uint64_t seen[64] = { 0 }; /* bits of the hashes: most pairs need no look */

    for (size_t i = 0; i < in->libs.n; i++) {
        uint64_t *word, bit;

        hashes[i] = hash(in->libs.v[i].object.soname);
        word = &seen[hashes[i] / 64 % COUNT(seen)];
        bit = UINT64_C(1) << hashes[i] % 64;
        for (size_t j = 0; *word & bit && j < i; j++) {
            const struct library *a = &in->libs.v[j], *b = &in->libs.v[i];

            if (hashes[i] != hashes[j] || b->why == WHY_LOADED || !b->path || !a->path || !b->object.soname ||
                !str_eq(a->object.soname, b->object.soname) || same_file(a, b))
                continue;
            finding_explain(findings_add(out, "soname-mismatch", LEVEL_WARN, SCOPE_JOB, b->path,
                                         "'%s' is loaded twice, from '%s' and, asked for as '%s', from here",
                                         b->object.soname, a->path, b->soname),
                            "twice", "two names of one library lead to two files",
                            "let both names lead to one file");
        }
        *word |= bit;
    }
    free(hashes);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };

    (void)err;
    while (walk_next(c, &w))
        if (w.index && w.lib->path && !w.lib->corrupt && w.lib->soname && !w.lib->preload)
            passes_for_another(c, &w, out);
    for (size_t i = 0; i < c->resolution->closures.n; i++)
        loaded_twice(&c->resolution->closures.v[i], out);
    return 0;
}

const struct rule rule_soname_mismatch = {
    .name = "soname-mismatch",
    .doc = "a file passes for another release or another vendor's runtime: its SONAME is not of the "
           "name that it is asked by; a warning where it is loaded twice",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
