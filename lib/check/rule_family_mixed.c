#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static const struct {
    const char *family, *begins[2];
} families[] = {
    { "cuDNN", { "libcudnn", NULL } },       { "cuBLAS", { "libcublas", NULL } },
    { "PyTorch", { "libtorch", "libc10" } }, { "libstdc++", { "libstdc++.so", NULL } },
    { "NCCL", { "libnccl.so", NULL } },
};

static bool is_of(const struct library *l, size_t family)
{
    for (size_t i = 0; i < 2 && families[family].begins[i]; i++)
        if (l->path && !l->corrupt && l->soname &&
            str_starts(path_base(l->soname), families[family].begins[i]))
            return true;
    return false;
}

static int major_of(const struct library *l)
{
    const char *so = strstr(path_base(l->soname), ".so.");

    return so ? atoi(so + 4) : 0;
}

/* /usr/lib and /lib are one on most systems. */
static bool same_folder(const char *a, const char *b)
{
    char *x = path_dir(a), *y = path_dir(b);
    const char *p = str_starts(x, "/usr/") ? x + 4 : x, *q = str_starts(y, "/usr/") ? y + 4 : y;
    bool same = str_eq(p, q);

    free(x);
    free(y);
    return same;
}

static void judge(const struct closure *in, size_t family, struct findings *out)
{
    const struct library *first = NULL;

    for (size_t i = 0; i < in->libs.n; i++) {
        const struct library *l = &in->libs.v[i];

        if (!is_of(l, family))
            continue;
        if (!first) {
            first = l;
        } else if ((major_of(l) && major_of(first) && major_of(l) != major_of(first)) ||
                   !same_folder(l->path, first->path)) {
            finding_explain(
                findings_add(out, "family-mixed", LEVEL_WARN, SCOPE_JOB, families[family].family,
                             "'%s' and '%s' meet in one process", first->path, l->path),
                NULL, "parts of one release are made for each other; two prefixes or modules are mixed",
                "take both from one folder: put it first in LD_LIBRARY_PATH, or unload the other module");
            return;
        }
    }
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < c->resolution->closures.n; i++)
        for (size_t f = 0; f < COUNT(families); f++)
            judge(&c->resolution->closures.v[i], f, out);
    return 0;
}

const struct rule rule_family_mixed = {
    .name = "family-mixed",
    .doc = "one library family (cuDNN, cuBLAS, PyTorch, libstdc++) comes from several folders or "
           "major versions in one process",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
