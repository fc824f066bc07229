/* Materials of a GLB: their JSON is kept as it stands for a GLB that is written, and said in MTL's words for an OBJ. */
#include "config.h"
#include "data/glb.h"
#include "data/mtl.h"

#include <math.h>
#include <stdlib.h>

/* numbers of the key, or what they are by default; n of them */
static void numbers(const struct glb *g, jsn_at o, const char *key, double *v, int n)
{
    jsn_at a = jsn_key(g->j, o, key);
    double x;

    for (int i = 0; i < n; i++)
        if (jsn_number(g->j, n == 1 ? a : jsn_item(g->j, a, (uint64_t)i), &x) && isfinite(x))
            v[i] = x;
}

static uint32_t image_of(const struct glb *g, jsn_at o, const char *key)
{
    uint64_t texture, source;

    if (!glb_whole(g, jsn_key(g->j, o, key), "index", UINT64_MAX, &texture) || texture == UINT64_MAX ||
        !glb_whole(g, glb_item(g, "textures", texture), "source", UINT64_MAX, &source) || source >= g->e.images.n)
        return RECON_NONE;
    return (uint32_t)source;
}

static void line(struct material *m, uint32_t image, const char *fmt, ...) PRINTF(3, 4);
static void line(struct material *m, uint32_t image, const char *fmt, ...)
{
    struct statement *s = VEC_ADD(&m->lines);
    char text[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    s->text = xstrdup(text);
    s->image = image;
}

static void maps(const struct glb *g, struct material *m, jsn_at from, jsn_at pbr)
{
    const struct {
        jsn_at o;
        const char *key, *word;
    } rows[] = {
        { pbr, "baseColorTexture", "map_Kd" }, { pbr, "metallicRoughnessTexture", "map_Pm" },
        { from, "emissiveTexture", "map_Ke" }, { from, "normalTexture", "norm" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t image = image_of(g, rows[i].o, rows[i].key);

        if (image != RECON_NONE)
            line(m, image, "%s", rows[i].word);
    }
}

static void take_material(struct glb *g, jsn_at from, uint64_t number)
{
    struct material *m = VEC_ADD(&g->e.materials);
    jsn_at pbr = jsn_key(g->j, from, "pbrMetallicRoughness");
    double color[4] = { 1, 1, 1, 1 }, glow[3] = { 0 }, metallic = 1, rough = 1;

    m->name = jsn_line(g->j, jsn_key(g->j, from, "name"));
    if (!m->name || !*m->name) {
        free(m->name);
        m->name = xasprintf("material%llu", (unsigned long long)number);
    }
    m->known = true;
    numbers(g, pbr, "baseColorFactor", color, 4);
    numbers(g, pbr, "metallicFactor", &metallic, 1);
    numbers(g, pbr, "roughnessFactor", &rough, 1);
    numbers(g, from, "emissiveFactor", glow, 3);
    line(m, RECON_NONE, "Kd %.9g %.9g %.9g", color[0], color[1], color[2]);
    if (color[3] != 1)
        line(m, RECON_NONE, "d %.9g", color[3]);
    if (glow[0] != 0 || glow[1] != 0 || glow[2] != 0)
        line(m, RECON_NONE, "Ke %.9g %.9g %.9g", glow[0], glow[1], glow[2]);
    line(m, RECON_NONE, "Pm %.9g", metallic);
    line(m, RECON_NONE, "Pr %.9g", rough);
    maps(g, m, from, pbr);
}

/* Bytes of the buffer, or a file's name; a picture in a data: address has neither and goes with the JSON alone. */
static int take_image(struct glb *g, jsn_at from, uint64_t number)
{
    struct image *p = VEC_ADD(&g->e.images);
    uint64_t view, step;
    const char *bytes;
    char *mime;
    bool known;
    char *uri = jsn_line(g->j, jsn_key(g->j, from, "uri"));

    if (uri && !str_starts(uri, "data:")) {
        p->name = uri;
        return 0;
    }
    free(uri);
    p->name = jsn_line(g->j, jsn_key(g->j, from, "name"));
    p->name = p->name ? p->name : xasprintf("image%llu", (unsigned long long)number);
    if (!glb_whole(g, from, "bufferView", UINT64_MAX, &view))
        return glb_bad(g, "image %llu is none", (unsigned long long)number);
    if (view == UINT64_MAX) {
        free(p->name);
        p->name = xstrdup("");
        return 0;
    }
    if (glb_bytes(g, view, &bytes, &p->n, &step))
        return -1;
    if (!p->n) /* glTF 2.0: byteLength is at least 1 */
        return glb_bad(g, "image %llu has no bytes", (unsigned long long)number);
    mime = jsn_line(g->j, jsn_key(g->j, from, "mimeType"));
    known = mime || glb_mime(bytes, p->n);
    free(mime);
    if (!known) /* and a mimeType wherever there is a bufferView */
        return glb_bad(g, "image %llu is neither PNG nor JPEG, and no mimeType says what else", (unsigned long long)number);
    p->bytes = xmalloc(p->n);
    memcpy(p->bytes, bytes, p->n);
    return 0;
}

static void keep_json(struct glb *g)
{
    static const char *const keys[] = { "materials", "textures", "samplers", "images", "extensionsUsed", "extensionsRequired" };
    struct str t = { 0 };

    for (size_t i = 0; i < COUNT(keys); i++) {
        size_t n;
        const char *raw = jsn_raw(g->j, jsn_key(g->j, GLB_ROOT, keys[i]), &n);

        if (n)
            str_addf(&t, "%s\"%s\":%.*s", t.len ? "," : "{", keys[i], (int)n, raw);
    }
    str_add(&t, "}");
    g->e.gltf = str_take(&t);
}

int glb_materials(struct glb *g)
{
    jsn_at images = jsn_key(g->j, GLB_ROOT, "images"), materials = jsn_key(g->j, GLB_ROOT, "materials");
    uint64_t bytes = 0;
    char *folder;

    if (!jsn_items(g->j, materials))
        return 0;
    for (uint64_t i = 0; i < jsn_items(g->j, images); i++) {
        if (take_image(g, jsn_item(g->j, images, i), i))
            return -1;
        bytes += g->e.images.v[i].n;
        if (bytes > 2 * g->load->n)
            return glb_bad(g, "its images name the same bytes again and again");
    }
    for (uint64_t i = 0; i < jsn_items(g->j, materials); i++)
        take_material(g, jsn_item(g->j, materials, i), i);
    keep_json(g);
    folder = path_dir(g->path);
    mtl_find_images(&(struct mtl_place){ g->options->root ? g->options->root : folder, folder, g->options->warn, g->options->warn_self }, &g->e);
    free(folder);
    return 0;
}
