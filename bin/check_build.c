#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include "check.h"
#include "cli.h"

/* ---- a toolkit against architectures ---- */

static int read_toolkit(const char *what, struct facts_toolkit *ret)
{
    size_t major = strspn(what, "0123456789"),
           minor = what[major] == '.' ? strspn(what + major + 1, "0123456789") : 0;

    if (major && minor) {
        *ret = (struct facts_toolkit){ .version = xstrndup(what, major + 1 + minor),
                                       .nvcc = true,
                                       .headers = true };
        return 0;
    }
    if (!strchr(what, '/'))
        return cli_error(CODE_USAGE, "toolkit '%s' is neither a version, as 12.4, nor a folder", what);
    facts_toolkit_read(what, ret);
    if (ret->version)
        return 0;
    return cli_error(CODE_USAGE,
                     "toolkit '%s' has no version.json, version.txt or include/cuda.h that tells its version",
                     what);
}

/* "gcc-13", "g++-12.2", "/usr/bin/gcc-12", "13" */
static int read_compiler(const char *what, int *ret)
{
    const char *name = path_base(what), *dash = strrchr(name, '-'), *digits = dash ? dash + 1 : name;

    *ret = isdigit((unsigned char)*digits) ? atoi(digits) : 0;
    if (*ret > 0 &&
        (digits == name || str_starts(name, "gcc-") || strstr(name, "g++-") || strstr(name, "-gcc-")))
        return 0;
    return cli_error(CODE_USAGE, "host compiler '%s' is no GCC with its version, wanted gcc-13", what);
}

static int read_archs(const char *list, struct strv *ret)
{
    struct strv each = { 0 };
    int rc = 0;

    strv_split(&each, list, ",; ");
    for (size_t i = 0; i < each.n && rc == 0; i++) {
        char suffix;
        int arch;

        if (*each.v[i] && compat_arch(each.v[i], &arch, &suffix))
            rc = cli_error(CODE_USAGE, "architecture '%s' is none, wanted 8.6, 9.0a, sm_86 or compute_86",
                           each.v[i]);
        else if (*each.v[i])
            strv_add(ret, each.v[i]);
    }
    strv_release(&each);
    return rc;
}

/* "3.18...3.29)" -> "3.18"; owned */
static char *version_of(const char *s)
{
    size_t n = 0;

    while (isdigit((unsigned char)s[n]) || (s[n] == '.' && isdigit((unsigned char)s[n + 1])))
        n++;
    return xstrndup(s, n);
}

/* "cmake-3.16.3", "gcc-12": a name, a dash, a release. */
static int read_tools(const struct options *o, const char *want, const char *who, struct build *b)
{
    for (size_t i = 0; i < o->tools.n; i++) {
        const char *what = o->tools.v[i], *dash = strrchr(what, '-');

        if (!dash || dash == what || !isdigit((unsigned char)dash[1]))
            return cli_error(CODE_USAGE, "tool '%s' is no name with a release, wanted cmake-3.16", what);
        if (want && strncmp(what, "cmake-", 6) == 0)
            *VEC_ADD(&b->tools) = (struct build_tool){ xstrndup(what, (size_t)(dash - what)), xstrdup(dash + 1), xstrdup(want),
                                                       xstrdup(who) };
    }
    return 0;
}

/* cmake_minimum_required(VERSION 3.18...3.29) of a CMakeLists.txt: "3.18"; owned, NULL none. */
static char *cmake_minimum(const char *text)
{
    for (const char *p = text; (p = strcasestr(p, "cmake_minimum_required")); p++) {
        const char *line = p;

        while (line > text && line[-1] != '\n')
            line--;
        if (memchr(line, '#', (size_t)(p - line)))
            continue;
        p += strcspn(p, "0123456789)\n");
        return isdigit((unsigned char)*p) ? version_of(p) : NULL;
    }
    return NULL;
}

/* What the source asks of its tools. */
static int read_source(const struct options *o, struct build *b)
{
    char *path = o->source ? path_join(o->source, "CMakeLists.txt") : NULL, *want = NULL, *who = NULL;
    struct str t = { 0 };
    struct err err = { 0 };
    int rc = 0;

    if (path && file_read(path, FILE_MAX_DEFAULT, &t, &err))
        rc = cli_fail(&err);
    else if (path)
        want = cmake_minimum(t.s);
    who = xasprintf("'%s'", path ? path : "");
    if (rc == 0)
        rc = read_tools(o, want, who, b);
    str_release(&t);
    free(path);
    free(want);
    free(who);
    return rc;
}

/* All rules but those about building. */
static void only_building(const struct options *o, struct strv *ret)
{
    static const char *const ours[] = { "toolkit-too-old", "host-compiler-too-new", "host-compiler-too-old",
                                        "tool-too-old", "toolkit-incomplete" };

    strv_copy(ret, &o->skip);
    for (size_t i = 0; check_rules[i]; i++) {
        bool keep = false;

        for (size_t j = 0; j < COUNT(ours); j++)
            keep |= str_eq(check_rules[i]->name, ours[j]);
        if (!keep)
            strv_add(ret, check_rules[i]->name);
    }
}

int check_build(const struct options *o, const struct facts *f)
{
    struct build b = { .gcc = 0 };
    struct resolution none = { 0 };
    struct findings found = { 0 };
    struct strv skip = { 0 };
    double start = clock_ms();
    int status = o->toolkit ? read_toolkit(o->toolkit, &b.toolkit) : 0;

    if (!status)
        status = read_source(o, &b);
    if (!status && o->archs)
        status = read_archs(o->archs, &b.archs);
    if (!status && o->compiler)
        status = read_compiler(o->compiler, &b.gcc);
    if (!status) {
        only_building(o, &skip);
        check(&(struct check_case){ .facts = f, .resolution = &none, .build = &b, .levels = &o->levels }, &skip, &found);
        found.ms = clock_ms() - start;
        report(o, &none, &found);
        status = findings_status(&found);
    }
    findings_release(&found);
    strv_release(&skip);
    strv_release(&b.archs);
    for (size_t i = 0; i < b.tools.n; i++) {
        free(b.tools.v[i].name);
        free(b.tools.v[i].have);
        free(b.tools.v[i].want);
        free(b.tools.v[i].who);
    }
    free(b.tools.v);
    free(b.toolkit.path);
    free(b.toolkit.version);
    return status;
}

/* ---- what to compile for ---- */

static int by_arch(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void collect(const struct nodes *l, struct strv *ret_other, int **ret, size_t *ret_n)
{
    struct {
        int *v;
        size_t n, cap;
    } archs = { 0 };

    for (size_t i = 0; i < l->n; i++)
        for (size_t g = 0; g < l->v[i].facts.gpus.n; g++) {
            const char *text = l->v[i].facts.gpus.v[g].compute_capability;
            bool known = false;
            char suffix;
            int arch;

            if (!text || strchr(text, 'g') || compat_arch(text, &arch, &suffix)) {
                if (text && !strv_has(ret_other, text))
                    strv_add(ret_other, text);
                continue;
            }
            for (size_t k = 0; k < archs.n; k++)
                known |= archs.v[k] == arch;
            if (!known)
                *VEC_ADD(&archs) = arch;
        }
    if (archs.n)
        qsort(archs.v, archs.n, sizeof(*archs.v), by_arch);
    *ret = archs.v;
    *ret_n = archs.n;
}

/* From which toolkit on, and up to which one, all of them are compiled. */
static void tell_toolkits(const int *v, size_t n)
{
    const char *from = NULL, *until = NULL;

    for (size_t i = 0; i < n; i++) {
        const char *first, *dropped;

        if (compat_arch_toolkits(v[i], 0, &first, &dropped))
            continue;
        if (!from || version_cmp(first, from) > 0)
            from = first;
        if (dropped && (!until || version_cmp(dropped, until) < 0))
            until = dropped;
    }
    if (from && until && version_cmp(from, until) >= 0)
        fprintf(stderr,
                "no one toolkit compiles for all: CUDA %s or newer, and older than %s; build a variant for "
                "each\n",
                from, until);
    else if (from)
        fprintf(stderr, "CUDA %s or newer%s%s\n", from, until ? ", and older than " : "", until ? until : "");
}

int print_arch_list(const struct options *o, const struct nodes *l)
{
    struct strv other = { 0 };
    size_t n;
    int *v;

    collect(l, &other, &v, &n);
    if (!n && !other.n)
        return cli_error(CODE_USAGE,
                         "%s has no GPU whose compute capability is known; name one: --assume gpu=9.0",
                         o->facts ? o->facts : "this node");
    for (size_t i = 0; i < n; i++)
        printf("%s%d.%d%s", i ? ";" : "TORCH_CUDA_ARCH_LIST='", v[i] / 10, v[i] % 10,
               i + 1 == n ? "+PTX'\n" : "");
    for (size_t i = 0; i < n; i++)
        printf("%s%d%s", i ? ";" : "CMAKE_CUDA_ARCHITECTURES='", v[i], i + 1 == n ? "'\n" : "-real");
    for (size_t i = 0; i < n; i++)
        if (i + 1 < n)
            printf("%s-gencode arch=compute_%d,code=sm_%d ", i ? "" : "NVCC_GENCODE='", v[i], v[i]);
        else
            printf("%s-gencode arch=compute_%d,code=[sm_%d,compute_%d]'\n", i ? "" : "NVCC_GENCODE='", v[i],
                   v[i], v[i]);
    tell_toolkits(v, n);
    for (size_t i = 0; i < other.n; i++)
        printf("--offload-arch=%s\n", other.v[i]);
    strv_release(&other);
    free(v);
    return 0;
}
