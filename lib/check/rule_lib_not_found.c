#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

enum { SHOWN = 8 }; /* places named in a text */

static void add_place(struct str *t, const char *path, const char *why_not)
{
    bool plain = str_eq(why_not, "no such file");
    char *dir = plain ? path_dir(path) : xstrdup(path);

    str_addf(t, "%s%s", t->len ? ", " : "", dir);
    if (!plain)
        str_addf(t, " (%s)", why_not);
    free(dir);
}

/* "/a (no such directory), /b, the loader's cache, /lib": folders where no file of the name was, and why of the others. */
static void looked_in(const struct closure *in, const struct library *l, struct str *t)
{
    bool cache = false;

    for (size_t i = 0; i < l->tried.n; i++) {
        if (i == SHOWN) {
            str_addf(t, " and %zu more", l->tried.n - i);
            return;
        }
        if (l->tried.v[i].why == WHY_DEFAULT && !cache && !in->musl) {
            str_addf(t, "%sthe loader's cache", t->len ? ", " : "");
            cache = true;
        }
        add_place(t, l->tried.v[i].path, l->tried.v[i].why_not);
    }
    for (size_t i = 0; !l->tried.n && i < l->missed.n && i < SHOWN; i++) {
        const struct searched_dir *d = l->missed.v[i] < in->dirs.n ? &in->dirs.v[l->missed.v[i]] : NULL;

        if (d)
            str_addf(t, "%s%s%s", t->len ? ", " : "", d->path, d->mtime_ns ? "" : " (no such directory)");
    }
    if (!t->len)
        str_add(t, "the loader's cache and default directories");
}

static bool dir_missing(const struct closure *in, const char *dir)
{
    for (size_t i = 0; i < in->dirs.n; i++)
        if (str_eq(in->dirs.v[i].path, dir))
            return in->dirs.v[i].mtime_ns == 0;
    return false;
}

/* A plain directory of the run path that does not exist; "" if none. Owned. */
static char *dead_run_path(const struct closure *in, const struct object *o)
{
    const char *path = o->runpath ? o->runpath : o->rpath;
    struct strv dirs = { 0 };
    char *dead = NULL;

    if (path)
        strv_split(&dirs, path, ":");
    for (size_t i = 0; i < dirs.n && !dead; i++)
        if (*dirs.v[i] == '/' && dir_missing(in, dirs.v[i]))
            dead = xstrdup(dirs.v[i]);
    strv_release(&dirs);
    return dead ? dead : xstrdup("");
}

static bool below_run_path(const struct closure *in, const char *file)
{
    const struct object *program = &in->libs.v[in->main].object;
    char *dir = path_dir(file), *origin = in->libs.v[in->main].path ? path_dir(in->libs.v[in->main].path) : xstrdup("");
    struct strv dirs = { 0 };
    bool found = false;

    if (program->runpath)
        strv_split(&dirs, program->runpath, ":");
    for (size_t i = 0; i < dirs.n && !found; i++) {
        const char *p = dirs.v[i], *rest = str_starts(p, "$ORIGIN") ? p + 7 : str_starts(p, "${ORIGIN}") ? p + 9 : NULL;
        char *whole = rest ? xasprintf("%s%s", origin, rest) : xstrdup(p), *clean = path_absolute(whole);

        found = str_eq(clean, dir);
        free(whole);
        free(clean);
    }
    strv_release(&dirs);
    free(dir);
    free(origin);
    return found;
}

static bool unreadable(const struct library *l)
{
    for (size_t i = 0; i < l->tried.n; i++)
        if (strcasestr(l->tried.v[i].why_not, "permission") || strcasestr(l->tried.v[i].why_not, "read"))
            return true;
    return false;
}

static bool in_usual_place(const char *file)
{
    static const char *const places[] = { "/usr/lib", "/lib", "/usr/local/lib", "/opt/", "/usr/local/cuda" };

    for (size_t i = 0; i < COUNT(places); i++)
        if (str_starts(file, places[i]))
            return true;
    return false;
}

/* What the loader passes over in secure mode; "" nothing. */
static const char *ignored_paths(const struct check_case *c, const struct closure *in)
{
    const struct object *program = &in->libs.v[in->main].object;
    const char *run = program->runpath ? program->runpath : program->rpath;

    if (case_var(c, "LD_LIBRARY_PATH"))
        return "LD_LIBRARY_PATH";
    return !in->module && run && strstr(run, "ORIGIN") ? "$ORIGIN outside the default directories" : "";
}

/* Why it is not found, as far as the search shows it. Sets the cause. */
static const char *hint_of(const struct check_case *c, const struct closure *in, const struct library *l, char **ret_cause)
{
    const struct library *by = &in->libs.v[l->needed_by < in->libs.n ? l->needed_by : 0];
    const char *found = l->candidates.n ? l->candidates.v[0] : NULL;
    char *dead = dead_run_path(in, &by->object);
    const char *hint = NULL;

    *ret_cause = NULL;
    if (in->secure && *ignored_paths(c, in)) {
        hint = "secure-mode";
        *ret_cause = xasprintf("the loader ignores %s for a program that is set-uid, set-gid or has file capabilities",
                               ignored_paths(c, in));
    } else if (unreadable(l)) {
        hint = "unreadable";
        *ret_cause = xasprintf("a file of that name is there and may not be read");
    } else if (*dead) {
        hint = "runpath-dead";
        *ret_cause = xasprintf("the run path of '%s' leads to '%s', which does not exist here", library_name(by), dead);
    } else if (found && l->needed_by != in->main && below_run_path(in, found)) {
        hint = "runpath-not-inherited";
        *ret_cause = xasprintf("'%s' lies in the RUNPATH of '%s', which serves the program's own needs, not those of '%s'",
                               found, library_name(&in->libs.v[in->main]), library_name(by));
    } else if (c->pin && c->received && !c->restored && !env_get(c->received, "LD_LIBRARY_PATH")) {
        hint = "export-none";
        *ret_cause = xasprintf("LD_LIBRARY_PATH is not in the environment");
    } else if (found && in_usual_place(found)) {
        hint = "cache-entry-missing";
        *ret_cause = xasprintf("'%s' is there, but neither in the loader's cache nor in LD_LIBRARY_PATH", found);
    }
    free(dead);
    return hint;
}

/* The pin knows a place of it: another node has it. */
static const struct pin_object *pinned(const struct check_case *c, const char *soname)
{
    for (size_t i = 0; c->pin && i < c->pin->objects.n; i++)
        if (str_eq(c->pin->objects.v[i].soname, soname) && c->pin->objects.v[i].path)
            return &c->pin->objects.v[i];
    return NULL;
}

static char *remedy_of(const struct check_case *c, const struct library *l, const char *hint, const struct pin_object *p)
{
    char *name, *text;

    if (str_eq(hint, "unreadable"))
        for (size_t i = 0; i < l->tried.n; i++)
            if (strcasestr(l->tried.v[i].why_not, "permission") || strcasestr(l->tried.v[i].why_not, "read")) {
                name = esc_shell(l->tried.v[i].path);
                text = xasprintf("chmod a+r %s", name);
                free(name);
                return text;
            }
    if (str_eq(hint, "secure-mode"))
        return xasprintf("an absolute DT_RUNPATH in the program (patchelf --set-rpath), or as root: a file in "
                         "/etc/ld.so.conf.d that names the folder%s%s, and ldconfig",
                         l->candidates.n ? " of " : "", l->candidates.n ? l->candidates.v[0] : "");
    if (l->candidates.n)
        return remedy_library_path(c, l->candidates.v[0]);
    if (p)
        return xasprintf("sbatch --exclude=%s (at capture it was %s)", case_node(c), p->path);
    name = xasprintf("%s*", l->soname);
    text = esc_shell(name);
    free(name);
    name = xasprintf("find / -xdev -name %s -not -path '/proc/*' 2>/dev/null, then put its folder into LD_LIBRARY_PATH%s", text,
                     c->pin && c->restored ? " and capture the pin again" : "");
    free(text);
    return name;
}

static size_t other_needers(const struct closure *in, const struct library *l)
{
    size_t n = 0;

    for (size_t i = 0; i < in->libs.n; i++)
        n += i != l->needed_by && strv_has(&in->libs.v[i].object.needed, l->soname);
    return n;
}

static void report(const struct check_case *c, const struct walk *w, struct findings *out)
{
    const struct library *l = w->lib;
    const struct pin_object *p = pinned(c, l->soname);
    enum level level = c->elsewhere ? LEVEL_WARN : LEVEL_ERROR; /* that node's system may have it */
    size_t others = other_needers(w->in, l);
    struct str places = { 0 };
    char *cause, *remedy, *more = others ? xasprintf(" and %zu more", others) : xstrdup("");
    const char *hint = hint_of(c, w->in, l, &cause);

    remedy = remedy_of(c, l, hint, p);
    looked_in(w->in, l, &places);
    finding_explain(findings_add(out, "lib-not-found", level, p ? SCOPE_NODE : SCOPE_JOB, l->soname,
                                 "needed by '%s'%s, found nowhere%s; looked in %s%s%s", needer(w->in, l), more,
                                 c->elsewhere ? " here" : "", places.s,
                                 l->candidates.n ? "; a file of that name is " : "",
                                 l->candidates.n ? l->candidates.v[0] : ""),
                    hint, cause ? cause : p ? "the node lacks what the pin promised" : NULL, remedy);
    free(cause);
    free(remedy);
    free(more);
    str_release(&places);
}

/* libcuda.so.1 and its kin come with the driver: a login node without a GPU lacks them and proves nothing. */
static void report_driver(const struct check_case *c, const struct walk *w, struct findings *out)
{
    const struct facts *f = c->facts;
    bool gpus = f && (f->gpus.n || f->driver.kernel_module);
    bool assumed = f && (str_eq(f->driver.source, "assumed") || (f->gpus.n && str_eq(f->gpus.v[0].name, "assumed")));
    bool none = f && f->gpus_known && !f->gpus.n && !f->driver.kernel_module;
    const char *soname = w->lib->soname, *by = needer(w->in, w->lib);
    struct finding *x;

    if (gpus && (c->elsewhere || assumed)) {
        findings_add(out, "lib-not-found", LEVEL_NOTE, SCOPE_NODE, soname,
                     "needed by '%s'; it comes with the NVIDIA driver, whose files on '%s' cannot be seen from here", by,
                     case_node(c));
        return;
    }
    x = findings_add(out, "lib-not-found", LEVEL_ERROR, SCOPE_NODE, soname,
                     "needed by '%s'; it comes with the NVIDIA driver, and %s%s", by, case_node(c),
                     none ? " has no GPU" : gpus ? " has a driver, but the loader does not find its libraries"
                                                 : " has no driver that was seen");
    finding_explain(x, NULL, gpus ? "a container started without the driver's libraries, or a missing ld.so.cache entry"
                                  : "login nodes have no driver; a node with a GPU has it",
                    gpus ? "apptainer exec --nv ..., or /sbin/ldconfig -p | grep libcuda"
                         : "sbatch --gres=gpu:1 ..., or judge for a GPU node: recon-check --facts FILE");
}

/* [0] of a closure: a program or module that the pin names and that is not there. */
static void report_itself(const struct check_case *c, const struct library *l, struct findings *out)
{
    char *q = esc_shell(l->soname), *remedy = xasprintf("ls -l %s, or sbatch --exclude=%s", q, case_node(c));

    finding_explain(findings_add(out, "lib-not-found", LEVEL_ERROR, SCOPE_NODE, l->soname,
                                 "the pin names it as a program or module, and on %s it is not to be had (%s)", case_node(c),
                                 l->tried.n ? l->tried.v[0].why_not : "no such file"),
                    l->tried.n && str_eq(l->tried.v[0].why_not, "permission denied") ? "unreadable" : NULL,
                    "the file system that holds it is not mounted here, or the file was moved after the capture", remedy);
    free(remedy);
    free(q);
}

/* "libx.so.1=PATH (for MODULE)" */
static void report_opened(const char *line, struct findings *out)
{
    size_t n = strcspn(line, "=");
    char *soname = xstrndup(line, n), *file = xstrdup(line + n + (line[n] != '\0')), *by = strstr(file, " (for "), *dir, *q, *remedy;

    if (by) {
        *by = '\0';
        by += strlen(" (for ");
        by[strcspn(by, ")")] = '\0';
    }
    dir = path_dir(file);
    q = esc_shell(dir);
    remedy = xasprintf("import the package that owns it first; for what does not: export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", q);
    finding_explain(findings_add(out, "lib-not-found", LEVEL_WARN, SCOPE_JOB, soname,
                                 "needed by '%s', the loader finds it nowhere; taken from '%s', which Python code must have opened by then",
                                 by ? by : "a module", file),
                    "python-opens-it", "packages open libraries of other packages by their path (ctypes) before they import what needs them",
                    remedy);
    free(remedy);
    free(q);
    free(dir);
    free(soname);
    free(file);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };

    (void)err;
    for (size_t i = 0; i < c->resolution->opened.n; i++)
        report_opened(c->resolution->opened.v[i], out);
    while (walk_next(c, &w)) {
        if (w.lib->why != WHY_NOT_FOUND || w.lib->corrupt || w.lib->preload || !w.lib->soname ||
            library_wrong_class(w.lib) || (w.index && vendor_instead(c, w.lib->soname))) /* wrong-vendor tells it */
            continue;
        if (w.index == 0)
            report_itself(c, w.lib, out);
        else if (library_of_driver(w.lib->soname))
            report_driver(c, &w, out);
        else
            report(c, &w, out);
    }
    return 0;
}

const struct rule rule_lib_not_found = {
    .name = "lib-not-found",
    .doc = "a needed library is found nowhere; names who needs it, where it was looked for and where a file of that name "
           "lies; of node scope when the pin knows a place of it",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
