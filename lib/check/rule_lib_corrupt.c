#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* A part of glibc works only with the loader of its own release: a link to the system's in another folder helps nobody. */
static bool of_glibc(const char *path)
{
    static const char *const names[] = { "libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.",
                                         "libresolv.so.", "libutil.so.", "libanl.so.", "libmvec.so.", "libnss_" };
    const char *name = path_base(path);
    bool found = str_starts(name, "ld-linux") || str_starts(name, "ld-2.") || str_starts(name, "ld64.so");

    for (size_t i = 0; i < COUNT(names) && !found; i++)
        found = str_starts(name, names[i]);
    return found;
}

/* In front of all others the system's own folder would serve every library. */
static bool in_system(const char *path)
{
    return str_starts(path, "/lib") || str_starts(path, "/usr/lib");
}

/* Folders of others are left as they are: a fit file is put before the broken one, or its owner installs it again. */
static char *remedy(const struct check_case *c, const struct library *l)
{
    bool folder = str_eq(l->corrupt, "a directory"); /* ln -sf would put the link into it */
    const char *fit = l->candidates.n && !of_glibc(l->path) ? l->candidates.v[0] : NULL;
    char *q, *to, *text;

    if (of_glibc(l->path) && l->why == WHY_LD_LIBRARY_PATH)
        return remedy_without_folder(c, l->path);
    q = esc_shell(l->path);
    if (l->beside && !of_glibc(l->path)) { /* the link that it was */
        to = esc_shell(path_base(l->beside));
        text = folder ? xasprintf("mv %s %s.broken && ln -s %s %s", q, q, to, q) : xasprintf("ln -sf %s %s", to, q);
        free(to);
    } else if (fit && in_system(fit) && !library_of_system(l)) {
        text = xasprintf("install the library again, or mv %s %s.broken: the loader then goes on to '%s'", q, q, fit);
    } else if (fit && (l->why == WHY_LD_LIBRARY_PATH || l->why == WHY_RUNPATH || library_of_system(l))) {
        text = remedy_library_path(c, fit);
    } else if (l->why == WHY_LD_LIBRARY_PATH) {
        text = xasprintf("install the library again, or take its folder out of LD_LIBRARY_PATH: mv %s %s.broken", q, q);
    } else if (!library_of_system(l)) {
        text = xasprintf("install the library again, or mv %s %s.broken", q, q);
    } else {
        text = xasprintf("install the package again that owns it: dpkg -S %s || rpm -qf %s", q, q);
    }
    free(q);
    return text;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };

    (void)err;
    while (walk_next(c, &w)) {
        char *what;

        if (!w.lib->corrupt || !w.lib->path || w.lib->preload || library_is_special(w.lib)) /* a preload is warned of and left out */
            continue;
        what = remedy(c, w.lib);
        finding_explain(findings_add(out, "lib-corrupt", LEVEL_ERROR, SCOPE_NODE, w.lib->path,
                                     "%s, where '%s' needs a library; found by %s, and the loader looks no further",
                                     w.lib->corrupt, needer(w.in, w.lib), name_of(why_names, w.lib->why)),
                        NULL,
                        w.lib->beside ? "a symlink was lost on the way: its text is the name of a file beside it"
                                      : "the loader takes the first file of that name and ends there", what);
        free(what);
    }
    return 0;
}

const struct rule rule_lib_corrupt = {
    .name = "lib-corrupt",
    .doc = "where a library should be, the loader meets a text, an empty or truncated file, or a directory, and ends",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
