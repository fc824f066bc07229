#include "config.h"
#include "check/check_priv.h"

#include <search.h>
#include <stdlib.h>

/* Was this file (or missing name) seen in an earlier closure? Within one the loader has each once; what one has loaded
 * already was seen before that. */
static bool seen(const struct resolution *r, const struct walk *w)
{
    const char *name = library_name(w->lib);

    for (size_t c = 0; c < w->closure; c++)
        for (size_t i = 0; i < r->closures.v[c].libs.n; i++)
            if (r->closures.v[c].libs.v[i].why != WHY_LOADED && str_eq(library_name(&r->closures.v[c].libs.v[i]), name))
                return true;
    return false;
}

bool walk_next(const struct check_case *c, struct walk *w)
{
    const struct resolution *r = c->resolution;

    if (c->walks) {
        size_t at = w->lib ? w->at + 1 : w->at;

        *w = at < c->walks->n ? c->walks->v[at] : (struct walk){ .at = at };
        return w->lib != NULL;
    }
    if (w->lib)
        w->index++;
    for (; r && w->closure < r->closures.n; w->closure++, w->index = 0) {
        w->in = &r->closures.v[w->closure];
        for (; w->index < w->in->libs.n; w->index++) {
            w->lib = &w->in->libs.v[w->index];
            if (w->lib->why != WHY_LOADED && !seen(r, w))
                return true;
        }
    }
    w->lib = NULL;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void leave(void *text)
{
    (void)text; /* the closures' own */
}

void walks_make(const struct check_case *c, struct walks *ret)
{
    const struct resolution *r = c->resolution;
    void *names = NULL;
    size_t at = 0;

    for (size_t k = 0; r && k < r->closures.n; k++)
        for (size_t i = 0; i < r->closures.v[k].libs.n; i++) {
            const struct library *l = &r->closures.v[k].libs.v[i];
            const char *name = library_name(l), *const *first;

            if (l->why == WHY_LOADED)
                continue;
            first = tsearch(name, &names, by_text);
            if (!first || *first == name) /* within a closure the loader has each once */
                *VEC_ADD(ret) = (struct walk){ .closure = k, .index = i, .at = at++, .in = &r->closures.v[k], .lib = l };
        }
    tdestroy(names, leave);
}

const char *library_name(const struct library *l)
{
    return l->path ? l->path : l->soname ? l->soname : "";
}

const char *needer(const struct closure *c, const struct library *l)
{
    return l->needed_by < c->libs.n ? library_name(&c->libs.v[l->needed_by]) : "the program";
}

bool library_of_system(const struct library *l)
{
    return l->why == WHY_CACHE || l->why == WHY_DEFAULT;
}

bool library_of_driver(const char *soname)
{
    static const char *const prefixes[] = { "libcuda.so.", "libnvidia-", "libnvcuvid.so.", "libnvoptix.so.",
                                            "libcudadebugger.so." };

    for (size_t i = 0; soname && i < COUNT(prefixes); i++)
        if (str_starts(soname, prefixes[i]))
            return true;
    return false;
}

bool library_is_special(const struct library *l)
{
    static const char *const kinds[] = { "a FIFO", "a character device", "a block device", "no regular file" };

    for (size_t i = 0; l->corrupt && l->path && i < COUNT(kinds); i++)
        if (str_eq(l->corrupt, kinds[i]))
            return true;
    return false;
}

const struct tried *library_wrong_class(const struct library *l)
{
    for (size_t i = 0; l->why == WHY_NOT_FOUND && i < l->tried.n; i++)
        if (str_starts(l->tried.v[i].why_not, "wrong class") || str_starts(l->tried.v[i].why_not, "wrong machine"))
            return &l->tried.v[i];
    return NULL;
}

static void add_image(struct gpu_images *l, enum image_kind kind, const char *name, const char *isa)
{
    size_t n = strcspn(name, "0123456789"), digits = strspn(name + n, "0123456789");
    const char *point = isa ? strchr(isa, '.') : NULL;

    if (!digits || digits > 4)
        return;
    *VEC_ADD(l) = (struct gpu_image){ .kind = kind, .container = l->containers, .arch = (uint16_t)atoi(name + n),
                                      .suffix = name[n + digits], .major = (uint16_t)(isa ? atoi(isa) : 0),
                                      .minor = (uint16_t)(point ? atoi(point + 1) : 0) };
}

static void add_openmp(struct offload_images *l, const char *name)
{
    bool ir = str_starts(name, "ir:");

    *VEC_ADD(l) = (struct offload_image){ OFFLOAD_OPENMP, ir ? OFFLOAD_IR : OFFLOAD_CODE, 1, xstrdup(ir ? name + 3 : name) };
}

/* One container for each set; how many there are is lost in the words only. */
void images_of_pin(const struct pin_object *o, struct gpu_images *ret)
{
    for (size_t i = 0; i < o->gpu.n; i++, ret->containers++) {
        const struct pin_gpu *g = &o->gpu.v[i];

        for (size_t j = 0; j < g->sass.n; j++)
            add_image(ret, IMAGE_SASS, g->sass.v[j], NULL);
        for (size_t j = 0; j < g->ptx.n; j++)
            add_image(ret, IMAGE_PTX, g->ptx.v[j], g->ptx_isa);
        if (g->toolkit && (!ret->toolkit || version_cmp(g->toolkit, ret->toolkit) > 0)) {
            free(ret->toolkit);
            ret->toolkit = xstrdup(g->toolkit);
        }
    }
    strv_copy(&ret->hip, &o->hip);
    for (size_t i = 0; i < o->openmp.n; i++)
        add_openmp(&ret->offload, o->openmp.v[i]);
}

const struct gpu_images *library_images(const struct check_case *c, const struct library *l, struct gpu_images *scratch)
{
    const struct gpu_images *own = &l->object.images;

    if (own->n || own->hip.n || own->offload.n || !c->pin || !c->resolution || !c->resolution->reused)
        return own;
    for (size_t i = 0; i < c->pin->objects.n; i++) {
        const struct pin_object *o = &c->pin->objects.v[i];

        if ((o->gpu.n || o->hip.n || o->openmp.n) && str_eq(o->path, l->path)) {
            images_of_pin(o, scratch);
            break;
        }
    }
    return scratch;
}

char *const *case_env(const struct check_case *c)
{
    if (c->resolution && c->resolution->env.n)
        return c->resolution->env.v;
    return c->received;
}

const char *case_var(const struct check_case *c, const char *name)
{
    char *const *env = case_env(c);

    return env ? env_get(env, name) : NULL;
}

const char *case_node(const struct check_case *c)
{
    return c->facts && c->facts->node ? c->facts->node : "this node";
}

const char *driver_cuda(const struct facts *f)
{
    return f->driver.cuda ? f->driver.cuda : compat_cuda_of_driver(f->driver.kernel_module);
}

/* The launcher gives a program the pinned value: another one counts only once it is in the pin. Takes text. */
static char *into_the_pin(const struct check_case *c, char *text)
{
    const char *program = c->pin && c->pin->objects.n ? c->pin->objects.v[0].path : NULL;
    char *quoted, *whole;

    if (!c->pin || !c->restored)
        return text;
    quoted = program ? esc_shell(program) : xstrdup("PROGRAM");
    whole = xasprintf("%s; recon-pin capture -o PIN %s (or recon-submit again): the launcher restores the pinned value; or "
                      "sbatch --exclude=%s",
                      text, quoted, case_node(c));
    free(quoted);
    free(text);
    return whole;
}

char *remedy_library_path(const struct check_case *c, const char *file)
{
    char *dir = path_dir(file), *quoted = esc_shell(dir), *text;

    text = xasprintf("export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", quoted);
    free(quoted);
    free(dir);
    return into_the_pin(c, text);
}

char *remedy_without_folder(const struct check_case *c, const char *file)
{
    const char *list = case_var(c, "LD_LIBRARY_PATH");
    char *dir = path_dir(file), *clean = path_absolute(dir), *quoted, *text;
    struct strv dirs = { 0 };
    struct str kept = { 0 };

    if (list)
        strv_split(&dirs, list, ":;");
    for (size_t i = 0; i < dirs.n; i++) {
        char *one = path_absolute(dirs.v[i]);

        if (*dirs.v[i] && !str_eq(one, clean))
            str_addf(&kept, "%s%s", kept.len ? ":" : "", dirs.v[i]);
        free(one);
    }
    quoted = esc_shell(kept.len ? kept.s : "");
    text = kept.len ? xasprintf("export LD_LIBRARY_PATH=%s", quoted) : xstrdup("unset LD_LIBRARY_PATH");
    free(quoted);
    str_release(&kept);
    strv_release(&dirs);
    free(clean);
    free(dir);
    return into_the_pin(c, text);
}

bool case_forward_compatible(const struct check_case *c)
{
    char *const *env = case_env(c);
    const char *path = env ? env_get(env, "LD_LIBRARY_PATH") : NULL;

    return path && (strstr(path, "/compat:") || strstr(path, "/compat/") || str_ends(path, "/compat"));
}
