#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* What one object lacks. first: the symbol that words are made of, a fatal one or one with a twin if there is any. */
struct lack {
    const struct closure *in;
    const struct library *needer;
    const struct resolution_symbol *first;
    size_t all, fatal;
};

static bool new_abi(const char *mangled)
{
    return strstr(mangled, "__cxx11") || strstr(mangled, "B5cxx11");
}

static bool abi_differs(const struct resolution_symbol *x)
{
    return x->twin && new_abi(x->twin) != new_abi(x->name);
}

static bool of_torch(const char *mangled)
{
    static const char *const stems[] = { "_ZN3c10", "_ZNK3c10", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch",
                                         "_ZN6caffe2", "_ZTIN3c10", "_ZTVN3c10", "_ZTIN5torch", "_ZTVN5torch" };

    for (size_t i = 0; i < COUNT(stems); i++)
        if (str_starts(mangled, stems[i]))
            return true;
    return false;
}

static const struct library *torch_of(const struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++)
        if (c->libs.v[i].path && (str_starts(path_base(c->libs.v[i].path), "libc10") ||
                                  str_starts(path_base(c->libs.v[i].path), "libtorch")))
            return &c->libs.v[i];
    return NULL;
}

/* ---- what is judged ---- */

/* A library that is not there, or lacks the version, has a finding of its own. */
static bool incomplete(const struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++)
        if (!c->libs.v[i].preload && (!c->libs.v[i].path || c->libs.v[i].corrupt))
            return true;
    return false;
}

/* Such a version may be missing: the loader only says so. */
static bool version_weak(const struct closure *c, const struct resolution_symbol *x)
{
    const struct object *o = &c->libs.v[x->object].object;

    for (size_t i = 0; i < o->needs.n; i++)
        if (o->needs.v[i].weak && str_eq(o->needs.v[i].version, x->version) && str_eq(o->needs.v[i].file, x->file))
            return true;
    return false;
}

static bool version_missing(const struct closure *c, const struct resolution_symbol *x)
{
    size_t p = x->provider;

    return x->version && !version_weak(c, x) && p != SIZE_MAX && c->libs.v[p].object.versions.n && !strv_has(&c->libs.v[p].object.versions, x->version);
}

static bool is_program(const struct closure *c)
{
    const struct object *o = &c->libs.v[c->main].object;

    return o->interp && (o->type == 2 || o->is_pie);
}

/* Python opens extension modules with RTLD_NOW. */
static bool binds_now(const struct check_case *c, const struct closure *in, const struct closure *host)
{
    char *const *env = case_env(c);
    const char *now = env ? env_get(env, "LD_BIND_NOW") : NULL;

    if (now && *now)
        return true;
    return in->module && host && host->libs.v[host->main].path &&
           str_starts(path_base(host->libs.v[host->main].path), "python");
}

/* ---- words ---- */

static char *what_is_there(const struct lack *l)
{
    const struct resolution_symbol *x = l->first;
    size_t p = x->provider;
    const struct library *provider = p == SIZE_MAX ? NULL : &l->in->libs.v[p];

    if (abi_differs(x))
        return xasprintf("'%s' has '%s', built for the %s C++ ABI (_GLIBCXX_USE_CXX11_ABI=%d)", x->twin_lib,
                         x->twin_shown ? x->twin_shown : x->twin, new_abi(x->twin) ? "new" : "old", new_abi(x->twin));
    if (x->twin)
        return xasprintf("'%s' has '%s': another release than the one that '%s' was built with", x->twin_lib,
                         x->twin_shown ? x->twin_shown : x->twin, path_base(library_name(l->needer)));
    if (provider && provider->path)
        return xasprintf("'%s', which the loader takes by %s, %s%s%s%s", provider->path,
                         name_of(why_names, (int)provider->why),
                         x->unversioned ? "was built without versions: it has the symbol, but as no version"
                         : x->file      ? "has not the symbol of that version"
                                        : "has its like but not this one: another release",
                         provider->candidates.n ? "; '" : "",
                         provider->candidates.n ? provider->candidates.v[0] : "",
                         provider->candidates.n ? "' has it" : "");
    return xasprintf("none of %zu objects in scope offers it", l->in->libs.n);
}

static char *remedy(const struct check_case *c, const struct lack *l)
{
    const struct resolution_symbol *x = l->first;
    const struct library *torch = of_torch(x->name) ? torch_of(l->in) : NULL;
    size_t p = x->provider;
    const char *name = path_base(library_name(l->needer));

    if (p != SIZE_MAX && l->in->libs.v[p].candidates.n)
        return remedy_library_path(c, l->in->libs.v[p].candidates.v[0]);
    if (torch)
        return xasprintf("build the package of '%s' against the torch of '%s': pip install --force-reinstall "
                         "--no-cache-dir --no-build-isolation PACKAGE", name, torch->path);
    if (abi_differs(x))
        return xasprintf("compile '%s' with -D_GLIBCXX_USE_CXX11_ABI=%d, or take a build of '%s' for the other ABI", name,
                         new_abi(x->twin), path_base(x->twin_lib));
    return xasprintf("load the releases that '%s' was built with from one place, or build it against those that are here; "
                     "ldd -r '%s' shows the same", name, library_name(l->needer));
}

/* A wrong file was taken, that much is sure: the other ABI is there, or another copy has what this one lacks. */
static bool wrong_file(const struct lack *l)
{
    const struct resolution_symbol *x = l->first;
    size_t p = x->provider;

    return abi_differs(x) || (p != SIZE_MAX && l->in->libs.v[p].candidates.n);
}

static void report(const struct check_case *c, const struct lack *l, enum level level, struct findings *out)
{
    const struct resolution_symbol *x = l->first;
    const char *hint = abi_differs(x)                         ? "cxx11-abi"
                       : of_torch(x->name) && torch_of(l->in) ? "torch-abi"
                       : x->unversioned                       ? "unversioned"
                       : l->fatal                             ? NULL
                                                              : "lazy";
    char *more = l->all > 1 ? xasprintf(" and %zu more", l->all - 1) : xstrdup("");
    char *there = what_is_there(l), *what = remedy(c, l);

    finding_explain(findings_add(out, "symbol-missing", level, SCOPE_JOB, library_name(l->needer),
                                 "'%s' needs %s'%s'%s%s%s%s%s%s, which %s%s",
                                 library_name(l->needer), x->lazy && !l->fatal ? "function " : "",
                                 x->shown ? x->shown : x->name, x->shown ? " (" : "", x->shown ? x->name : "",
                                 x->shown ? ")" : "", x->version ? " of version " : "", x->version ? x->version : "", more,
                                 x->unversioned ? "the loader finds without a version, and ends with a failed assertion "
                                                  "(dl-lookup.c: check_match)"
                                                : "nothing that is loaded offers",
                                 l->fatal ? "" : "; the program starts and dies when it is first called"),
                    hint, there, what);
    free(more);
    free(there);
    free(what);
}

/* ---- the walk ---- */

static bool better(const struct resolution_symbol *a, bool a_fatal, const struct resolution_symbol *b, bool b_fatal)
{
    return a_fatal != b_fatal ? a_fatal : abi_differs(a) != abi_differs(b) ? abi_differs(a) : a->twin && !b->twin;
}

/* Of the references from..to, which are one object's. */
static struct lack lack_of(const struct check_case *c, size_t from, size_t to, bool now)
{
    const struct resolution_symbol *all = c->resolution->symbols.v;
    struct lack l = { .in = &c->resolution->closures.v[all[from].closure] };
    bool first_fatal = false;

    l.needer = &l.in->libs.v[all[from].object];
    for (size_t i = from; i < to; i++) {
        const struct resolution_symbol *x = &all[i];
        bool fatal = !x->lazy || now;

        if (version_missing(l.in, x) || (c->elsewhere && x->version))
            continue;
        if (!l.first || better(x, fatal, l.first, first_fatal)) {
            l.first = x;
            first_fatal = fatal;
        }
        l.all++;
        l.fatal += fatal;
    }
    return l;
}

/* A library by itself: what it leaves to the program that will load it is no fault, a function of another ABI is. */
static void judge_library(const struct check_case *c, const struct lack *l, struct findings *out)
{
    if (abi_differs(l->first) || (l->first->twin && of_torch(l->first->name))) {
        report(c, l, LEVEL_ERROR, out);
        return;
    }
    finding_explain(findings_add(out, "symbol-missing", LEVEL_NOTE, SCOPE_JOB, library_name(l->needer),
                                 "'%s' leaves %zu symbols to the program that loads it, '%s' for one",
                                 library_name(l->needer), l->all, l->first->shown ? l->first->shown : l->first->name),
                    "host", "a library was judged without its program",
                    "recon-check --host PROGRAM, to judge it in that program's scope");
}

/* The program whose scope a module's closure lives in; a program's own is its own. */
static const struct closure *host_of(const struct resolution *r, size_t closure)
{
    while (closure > 0 && r->closures.v[closure].module)
        closure--;
    return &r->closures.v[closure];
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const struct resolution *r = c->resolution;

    (void)err;
    for (size_t i = 0, next; i < r->symbols.n; i = next) {
        size_t k = r->symbols.v[i].closure;
        const struct closure *in = &r->closures.v[k], *host = host_of(r, k);
        struct lack l;

        for (next = i; next < r->symbols.n && r->symbols.v[next].closure == k; next++)
            if (r->symbols.v[next].object != r->symbols.v[i].object)
                break;
        if (incomplete(in) || incomplete(host))
            continue;
        l = lack_of(c, i, next, binds_now(c, in, host));
        if (l.all && (in->module || is_program(in)))
            report(c, &l, l.fatal || wrong_file(&l) ? LEVEL_ERROR : LEVEL_WARN, out);
        else if (l.all)
            judge_library(c, &l, out);
    }
    return 0;
}

const struct rule rule_symbol_missing = {
    .name = "symbol-missing",
    .doc = "a reference that no object in scope answers: an error, a warning where it is a function that is bound at its "
           "first call and no file was mistaken for another; the launcher looks where a library is another build than pinned",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
