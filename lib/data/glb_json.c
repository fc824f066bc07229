/* Materials of a GLB that is written: as its reader kept them, or made from MTL's statements. */
#include "config.h"
#include "data/glb.h"
#include "data/mtl.h"

#include <math.h>
#include <stdlib.h>

enum { IMAGE_MAX = 1 << 30 };

void glb_materials_release(struct glb_materials *m)
{
    for (size_t i = 0; i < m->images.n; i++)
        str_release(&m->images.v[i].bytes);
    free(m->images.v);
    str_release(&m->json);
    *m = (struct glb_materials){ 0 };
}

struct writing {
    const struct extra *e;
    int first_view;
    struct glb_materials *ret;
    struct mesh_written *w;
    struct str images, textures;
    uint32_t *texture_of; /* of an image of e, from MTL: number of its texture, or RECON_NONE */
    uint32_t textures_n, images_n;
    struct strv words;    /* statements that have no place, each once */
};

const char *glb_mime(const void *bytes, uint64_t n)
{
    if (n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    return n >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0 ? "image/jpeg" : NULL;
}

/* the image's bytes into the buffer; mime NULL: what they are. false: gone, or no picture of glTF's */
static bool embed(struct writing *x, const struct image *p, const char *mime, struct str *to)
{
    struct glb_image new = { 0 };
    struct err err = { 0 };

    if (p->bytes)
        str_addn(&new.bytes, p->bytes, p->n);
    else if (p->path && file_read(p->path, IMAGE_MAX, &new.bytes, &err))
        strv_addf(&x->w->left_out, "the texture is left out: %s", err.text);
    if (!new.bytes.len) {
        str_release(&new.bytes);
        return false;
    }
    new.mime = glb_mime(new.bytes.s, new.bytes.len);
    if (!new.mime && !mime) {
        strv_addf(&x->w->left_out, "the texture '%s' is left out: glTF holds PNG and JPEG", p->name);
        str_release(&new.bytes);
        return false;
    }
    str_addf(to, "{\"bufferView\":%zu,\"mimeType\":", (size_t)x->first_view + x->ret->images.n);
    jsn_add_text(to, new.mime ? new.mime : mime);
    str_add(to, ",\"name\":");
    jsn_add_text(to, p->name);
    str_add(to, "}");
    *VEC_ADD(&x->ret->images) = new;
    return true;
}

/* ---- as they were read ---- */

static void add_member(struct str *t, const struct jsn *j, const char *key)
{
    size_t n;
    const char *raw = jsn_raw(j, jsn_key(j, GLB_ROOT, key), &n);

    if (n)
        str_addf(t, ",\"%s\":%.*s", key, (int)n, raw);
}

static int as_read(struct writing *x, struct err *err)
{
    static const char *const keys[] = { "materials", "textures", "samplers", "extensionsUsed", "extensionsRequired" };
    uint64_t where = 0;
    struct jsn *j = jsn_parse(x->e->gltf, strlen(x->e->gltf), &where);
    jsn_at images = j ? jsn_key(j, GLB_ROOT, "images") : 0;

    if (!j || jsn_items(j, images) != x->e->images.n) {
        jsn_free(j);
        return err_set(err, CODE_INTERNAL, "the materials of a mesh are no JSON from byte %llu", (unsigned long long)where);
    }
    for (size_t i = 0; i < COUNT(keys); i++)
        add_member(&x->ret->json, j, keys[i]);
    for (size_t i = 0; i < x->e->images.n; i++) {
        char *mime = jsn_line(j, jsn_key(j, jsn_item(j, images, i), "mimeType"));
        size_t n;
        const char *raw = jsn_raw(j, jsn_item(j, images, i), &n);

        str_add(&x->images, i ? "," : "");
        if (!embed(x, &x->e->images.v[i], mime, &x->images))
            str_addf(&x->images, "%.*s", (int)n, raw);
        free(mime);
    }
    if (x->images.len)
        str_addf(&x->ret->json, ",\"images\":[%s]", x->images.s);
    jsn_free(j);
    return 0;
}

/* ---- from MTL ---- */

/* RECON_NONE: the image is not there, or none of glTF's */
static uint32_t texture(struct writing *x, uint32_t image)
{
    struct str t = { 0 };

    if (image == RECON_NONE || x->texture_of[image] != UINT32_MAX - 1)
        return image == RECON_NONE ? RECON_NONE : x->texture_of[image];
    x->texture_of[image] = RECON_NONE;
    if (embed(x, &x->e->images.v[image], NULL, &t)) {
        str_addf(&x->images, "%s%s", x->images_n ? "," : "", t.s);
        str_addf(&x->textures, "%s{\"source\":%u}", x->textures_n ? "," : "", x->images_n++);
        x->texture_of[image] = x->textures_n++;
    }
    str_release(&t);
    return x->texture_of[image];
}

static void add_texture(struct writing *x, struct str *t, const struct material *m, const char *word, const char *key)
{
    uint32_t n = texture(x, mtl_image(m, word));

    if (n != RECON_NONE)
        str_addf(t, ",\"%s\":{\"index\":%u}", key, n);
}

static double unit(double v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* exponent of Blinn and Phong to roughness, as usual: sqrt(2 / (Ns + 2)) */
static double roughness(const struct material *m)
{
    double v;

    if (mtl_values(m, "Pr", &v, 1))
        return unit(v);
    return mtl_values(m, "Ns", &v, 1) && v >= 0 ? sqrt(2 / (v + 2)) : 1;
}

static double opacity(const struct material *m)
{
    double v;

    if (mtl_values(m, "d", &v, 1))
        return unit(v);
    return mtl_values(m, "Tr", &v, 1) ? unit(1 - v) : 1;
}

static void note_words(struct writing *x, const struct material *m)
{
    static const char *const placed[] = { "Kd", "Ke", "d", "Tr", "Ns", "Pm", "Pr", "map_Kd", "map_Ke", "norm", "illum" };

    for (size_t i = 0; i < m->lines.n && x->words.n < 40; i++) {
        const char *text = m->lines.v[i].text;
        char *word = xstrndup(text, strcspn(text, " \t"));
        bool fine = false;

        for (size_t k = 0; k < COUNT(placed); k++)
            fine = fine || str_eq(word, placed[k]);
        if (fine && m->lines.v[i].image != RECON_NONE && text[strlen(word)]) { /* -s 2 2 2 */
            free(word);
            word = xstrdup("options of textures");
            fine = false;
        }
        if (!fine && !strv_has(&x->words, word))
            strv_add(&x->words, word);
        free(word);
    }
}

static void add_material(struct writing *x, struct str *t, const struct material *m)
{
    double color[3] = { 1, 1, 1 }, glow[3], metallic = 0, alpha = opacity(m);

    mtl_values(m, "Kd", color, 3);
    mtl_values(m, "Pm", &metallic, 1);
    str_add(t, "{\"name\":");
    jsn_add_text(t, m->name);
    str_addf(t, ",\"pbrMetallicRoughness\":{\"baseColorFactor\":[%.9g,%.9g,%.9g,%.9g],\"metallicFactor\":%.9g,\"roughnessFactor\":%.9g", unit(color[0]),
             unit(color[1]), unit(color[2]), alpha, unit(metallic), roughness(m));
    add_texture(x, t, m, "map_Kd", "baseColorTexture");
    str_add(t, "}");
    add_texture(x, t, m, "norm", "normalTexture");
    if (mtl_values(m, "Ke", glow, 3))
        str_addf(t, ",\"emissiveFactor\":[%.9g,%.9g,%.9g]", unit(glow[0]), unit(glow[1]), unit(glow[2]));
    add_texture(x, t, m, "map_Ke", "emissiveTexture");
    str_addf(t, "%s}", alpha < 1 ? ",\"alphaMode\":\"BLEND\"" : "");
    note_words(x, m);
}

static void from_mtl(struct writing *x)
{
    const struct extra *e = x->e;
    struct str t = { 0 }, words = { 0 };

    x->texture_of = xmalloc((e->images.n + 1) * sizeof(*x->texture_of));
    for (size_t i = 0; i < e->images.n; i++)
        x->texture_of[i] = UINT32_MAX - 1;
    for (size_t i = 0; i < e->materials.n; i++) {
        str_add(&t, i ? "," : "");
        add_material(x, &t, &e->materials.v[i]);
    }
    str_addf(&x->ret->json, ",\"materials\":[%s]", t.s);
    if (x->textures_n)
        str_addf(&x->ret->json, ",\"textures\":[%s],\"images\":[%s]", x->textures.s, x->images.s);
    for (size_t i = 0; i < x->words.n; i++)
        str_addf(&words, "%s%s", i ? ", " : "", x->words.v[i]);
    if (words.len)
        strv_addf(&x->w->left_out, "glTF has no place for %s of materials", words.s);
    str_release(&words);
    str_release(&t);
    strv_release(&x->words);
    free(x->texture_of);
}

int glb_write_materials(const struct extra *e, int first_view, struct glb_materials *ret, struct mesh_written *w, struct err *err)
{
    struct writing x = { .e = e, .first_view = first_view, .ret = ret, .w = w };
    int rc = 0;

    if (e->gltf)
        rc = as_read(&x, err);
    else if (e->materials.n)
        from_mtl(&x);
    str_release(&x.images);
    str_release(&x.textures);
    return rc;
}
