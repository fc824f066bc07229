#include "config.h"
#include "data/mtl.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

char *mtl_stem(const char *path)
{
    const char *dot = strrchr(path_base(path), '.');

    return xstrndup(path, dot ? (size_t)(dot - path) : strlen(path));
}

/* ---- pictures ---- */

static const char *suffix_of(const struct image *p)
{
    const uint8_t *b = p->bytes;

    return p->n >= 8 && memcmp(b, "\x89PNG\r\n\x1a\n", 8) == 0 ? ".png" : p->n >= 3 && memcmp(b, "\xff\xd8\xff", 3) == 0 ? ".jpg" : "";
}

/* letters, digits and . _ - alone, no dot first: a name that no shell, no OBJ reader and no folder takes amiss */
static char *fine_name(const struct image *p, uint32_t number)
{
    const char *base = path_base(p->name), *back = strrchr(base, '\\'), *suffix = p->bytes ? suffix_of(p) : "";
    char *s = back ? xstrdup(back + 1) : xstrdup(base), *whole;

    for (char *q = s; *q; q++)
        if (!isalnum((unsigned char)*q) && *q != '-' && *q != '_' && (*q != '.' || q == s))
            *q = '_';
    if (strlen(s) > 100)
        memmove(s, s + strlen(s) - 100, 101); /* the end has the suffix */
    whole = *s ? xasprintf("%s%s", s, str_ends(s, suffix) ? "" : suffix) : xasprintf("image%u%s", number, suffix);
    free(s);
    return whole;
}

static int copy(const struct image *p, const char *to, struct fault *fault, struct err *err)
{
    enum { CHUNK = 1 << 20 };
    struct file_out o;
    uint64_t n = 0;
    char *chunk;
    int fd, rc = 0;

    if (p->bytes)
        return file_write(to, p->bytes, p->n, 0644, err);
    if ((fd = data_open(p->path, &n, fault)) < 0)
        return -1;
    if (file_open_out(&o, to, 0644, err)) {
        close(fd);
        return -1;
    }
    chunk = xmalloc(CHUNK);
    for (uint64_t at = 0; rc == 0 && at < n; at += CHUNK) {
        size_t k = n - at < CHUNK ? (size_t)(n - at) : CHUNK;

        rc = data_pread(fd, p->path, chunk, k, at, fault);
        if (rc == 0)
            fwrite(chunk, 1, k, o.f); /* a failed write shows at the commit */
    }
    free(chunk);
    close(fd);
    if (rc) {
        file_abort(&o);
        return -1;
    }
    return file_commit(&o, err);
}

/* a texture that is gone since it was found leaves its name and a note; a failed write ends it */
static int one_image(const struct image *p, const char *folder, const char *name, char **ret, struct mesh_written *w, struct err *err)
{
    char *to = path_join(folder, name);
    struct fault fault = { 0 };
    struct err local = { 0 };
    int rc = dir_make(folder, 0755, &local) || copy(p, to, &fault, &local) ? -1 : 0;

    *ret = NULL;
    if (rc == 0) {
        *ret = xasprintf("%s/%s", path_base(folder), name);
        strv_add(&w->files, to);
    } else if (local.code) {
        *err = local;
    } else {
        strv_addf(&w->left_out, "the texture is not copied: %s", fault.err.text);
        rc = 0;
    }
    free(to);
    return rc;
}

int mtl_write_images(const char *path, const struct extra *e, struct strv *ret_names, struct mesh_written *w, struct err *err)
{
    char *stem = mtl_stem(path), *folder = xasprintf("%s-textures", stem);
    struct extra taken = { 0 };
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < e->images.n; i++) {
        const struct image *p = &e->images.v[i];
        char *name = fine_name(p, i), *now = NULL;

        for (int k = 2; extra_image(&taken, name, strlen(name)) + 1 < taken.images.n; k++) { /* another has it */
            char *other = xasprintf("%d-%s", k, name);

            free(name);
            name = other;
        }
        if (p->path || p->bytes)
            rc = one_image(p, folder, name, &now, w, err);
        strv_add(ret_names, now ? now : p->name);
        free(now);
        free(name);
    }
    extra_free(&taken);
    free(folder);
    free(stem);
    return rc;
}

/* ---- the library ---- */

void mtl_names(const struct extra *e, struct strv *ret)
{
    struct extra taken = { 0 };

    for (size_t i = 0; i < e->materials.n; i++) {
        const char *given = e->materials.v[i].name;
        char *name = xasprintf("%s%s", *given ? given : "material", str_ends(given, "\\") ? "_" : ""); /* which would join lines */

        for (size_t k = 2; extra_material(&taken, name, strlen(name)) + 1 < taken.materials.n; k++) {
            free(name);
            name = xasprintf("%s.%zu", given, i + k);
        }
        strv_add(ret, name);
        free(name);
    }
    extra_free(&taken);
}

int mtl_write(const char *path, const struct extra *e, const struct strv *names, const struct strv *images, struct mesh_written *w, struct err *err)
{
    char *stem = mtl_stem(path), *to = xasprintf("%s.mtl", stem);
    struct file_out o;
    int rc = file_open_out(&o, to, 0644, err);

    if (rc == 0) {
        fputs("# recon\n", o.f);
        for (size_t i = 0; i < e->materials.n; i++) {
            const struct material *m = &e->materials.v[i];

            if (m->known)
                fprintf(o.f, "newmtl %s\n", names->v[i]);
            for (size_t k = 0; k < m->lines.n; k++) {
                const struct statement *s = &m->lines.v[k];

                if (s->image != RECON_NONE && !*images->v[s->image]) { /* a picture that stood in the text of a GLB */
                    strv_addf(&w->left_out, "the texture of '%s' of material '%s' has no file and is left out", s->text, names->v[i]);
                    continue;
                }
                fprintf(o.f, "%s%s%s\n", s->text, s->image == RECON_NONE ? "" : " ", s->image == RECON_NONE ? "" : images->v[s->image]);
            }
        }
        rc = file_commit(&o, err);
    }
    if (rc == 0)
        strv_add(&w->files, to);
    free(to);
    free(stem);
    return rc;
}
