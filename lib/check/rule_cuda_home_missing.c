#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static const char *const variables[] = { "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT" };

/* What the job will have: the pin's word, else the environment's, which is no promise. */
static const char *promised(const struct check_case *c, const char *name, enum level *ret_level)
{
    char *const *env = case_env(c);

    *ret_level = LEVEL_ERROR;
    for (size_t i = 0; c->pin && i < c->pin->variables.n; i++)
        if (str_eq(c->pin->variables.v[i].name, name) && c->pin->variables.v[i].how == PIN_SET)
            return c->pin->variables.v[i].value;
    *ret_level = LEVEL_WARN;
    return env ? env_get(env, name) : NULL;
}

/* A directory below dir was looked into while libraries were searched. */
static bool searched(const struct check_case *c, const char *dir, bool *ret_exists)
{
    const struct resolution *r = c->elsewhere ? NULL : c->resolution;
    size_t n = strlen(dir);

    for (size_t i = 0; r && i < r->closures.n; i++)
        for (size_t d = 0; d < r->closures.v[i].dirs.n; d++) {
            const struct searched_dir *s = &r->closures.v[i].dirs.v[d];

            if (strncmp(s->path, dir, n) == 0 && s->path[n] == '/' && s->mtime_ns) {
                *ret_exists = true;
                return true;
            }
        }
    return false;
}

static bool same_dir(const char *a, const char *b)
{
    char *x = path_absolute(a), *y = path_absolute(b);
    bool same = str_eq(x, y);

    free(x);
    free(y);
    return same;
}

/* 1 on the node, 0 not, -1 nobody looked there. */
static int on_node(const struct check_case *c, const char *dir)
{
    const struct facts *f = c->facts;
    char *clean = path_absolute(dir), *parent = path_dir(clean);
    bool exists = false;
    int known = -1;

    for (size_t i = 0; i < f->toolkits.n; i++) {
        char *beside = path_dir(f->toolkits.v[i]);

        if (same_dir(f->toolkits.v[i], clean))
            exists = true;
        if (str_eq(beside, parent)) /* the place was listed */
            known = 0;
        free(beside);
    }
    for (size_t i = 0; i < f->toolkit_places.n; i++)
        if (same_dir(f->toolkit_places.v[i], parent))
            known = 0;
    if (!exists)
        searched(c, clean, &exists);
    free(clean);
    free(parent);
    return exists ? 1 : known;
}

static bool is_beside(const char *a, const char *b)
{
    char *x = path_dir(a), *clean = path_absolute(b), *y = path_dir(clean);
    bool same = str_eq(x, y);

    free(x);
    free(y);
    free(clean);
    return same;
}

/* How near a toolkit of the node is to the one promised: the same major version, the same folder. */
static int nearness(const char *toolkit, const char *dir)
{
    const char *a = path_base(toolkit), *b = path_base(dir);
    size_t n = strcspn(b, "0123456789"), major = strspn(b + n, "0123456789");

    return (major && strncmp(a, b, n + major) == 0 ? 2 : 0) + (is_beside(toolkit, dir) ? 1 : 0);
}

static const char *instead(const struct facts *f, const char *dir)
{
    const char *best = NULL;

    for (size_t i = 0; i < f->toolkits.n; i++)
        if (!best || nearness(f->toolkits.v[i], dir) >= nearness(best, dir))
            best = f->toolkits.v[i];
    return best;
}

/* Those in the promised folder first. */
static void list(const struct facts *f, const char *dir, struct str *t)
{
    for (int beside = 1; beside >= 0; beside--)
        for (size_t i = 0; i < f->toolkits.n; i++)
            if (is_beside(f->toolkits.v[i], dir) == beside)
                str_addf(t, "%s%s", t->len ? ", " : "", f->toolkits.v[i]);
}

static void report(const struct check_case *c, const char *name, const char *dir, enum level level, struct findings *out)
{
    const struct facts *f = c->facts;
    const char *other = instead(f, dir);
    struct str have = { 0 };
    char *remedy;

    list(f, dir, &have);
    remedy = !other                 ? xasprintf("sbatch --exclude=%s", case_node(c))
             : level == LEVEL_ERROR ? xasprintf("capture the pin again with %s=%s, or sbatch --exclude=%s", name, other,
                                                case_node(c))
                                    : xasprintf("export %s=%s", name, other);
    finding_explain(findings_add(out, "cuda-home-missing", level, SCOPE_NODE, name,
                                 "%s=%s does not exist on %s; %s%s", name, dir, case_node(c),
                                 have.len ? "toolkits there: " : "no CUDA toolkit was found there",
                                 have.len ? have.s : ""),
                    NULL, level == LEVEL_ERROR ? "the toolkit was pinned where it exists; nodes differ"
                                               : "the variable was set where the toolkit exists; nodes differ", remedy);
    free(remedy);
    str_release(&have);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *told = NULL;
    int rc = 0;

    for (size_t i = 0; i < COUNT(variables); i++) {
        enum level level;
        const char *dir = promised(c, variables[i], &level);
        int there;

        if (!dir || *dir != '/' || str_eq(dir, told))
            continue;
        there = on_node(c, dir);
        if (there < 0)
            rc = err_set(err, CODE_UNAVAILABLE, "whether %s=%s exists on %s is not known", variables[i], dir,
                         case_node(c));
        if (there == 0) {
            report(c, variables[i], dir, level, out);
            told = dir;
        }
    }
    return rc;
}

const struct rule rule_cuda_home_missing = {
    .name = "cuda-home-missing",
    .doc = "the pinned CUDA_HOME (CUDA_PATH, CUDA_ROOT) is not on the node; names the toolkits that are; a warning "
           "where only the environment says so",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
