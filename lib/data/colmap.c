/* Poses and the camera of a COLMAP model (colmap.github.io, "Output Format"), text or binary: cameras and images in the
 * dataset, its sparse/ or sparse/0/. Poses there are world-to-camera (qw qx qy qz, t); pixel centres stand at halves, so half a
 * pixel is taken off the principal point. Depth is no part of a model: 16-bit PNG in depth/, under the image's name. */
#include "config.h"
#include "data/geom.h"

#include <math.h>
#include <stdlib.h>

enum { PARAMS_MAX = 12, NAME_LENGTH_MAX = 4096 };

/* models by number; focal: how many focal lengths come first; the numbers after the principal point are distortions */
static const struct model {
    const char *name;
    int params, focal;
} models[] = {
    { "SIMPLE_PINHOLE", 3, 1 }, { "PINHOLE", 4, 2 },        { "SIMPLE_RADIAL", 4, 1 }, { "RADIAL", 5, 1 },
    { "OPENCV", 8, 2 },         { "OPENCV_FISHEYE", 8, 2 }, { "FULL_OPENCV", 12, 2 },  { "FOV", 5, 2 },
    { "SIMPLE_RADIAL_FISHEYE", 4, 1 }, { "RADIAL_FISHEYE", 5, 1 }, { "THIN_PRISM_FISHEYE", 12, 2 },
};

struct cam {
    uint64_t id, width, height;
    int model;
    double params[PARAMS_MAX];
};
struct shot {
    char *name;
    uint64_t camera;
    double q[4], t[3];
};
struct scene {
    const char *path;
    struct {
        struct cam *v;
        size_t n, cap;
    } cams;
    struct {
        struct shot *v;
        size_t n, cap;
    } shots;
    struct fault *fault;
};

/* ---- text ---- */

static int bad_line(const struct scene *s, const struct text *t, const char *what)
{
    return fault_set(s->fault, CODE_DATA, NULL, "'%s' line %llu: %s", s->path, (unsigned long long)t->line, what);
}

static bool word(struct text *t, const char *end, const char **from, size_t *n)
{
    *from = t->p = skip_blank(t->p, end);
    while (t->p < end && !is_blank(*t->p))
        t->p++;
    *n = (size_t)(t->p - *from);
    return *n > 0;
}

static bool numbers(struct text *t, const char *end, double *v, int n)
{
    for (int i = 0; i < n; i++) {
        t->p = skip_blank(t->p, end);
        if (!number_read(&t->p, end, &v[i]))
            return false;
    }
    return true;
}

static bool whole(double v, uint64_t *ret)
{
    if (!(v >= 0 && v <= 9007199254740992.0) || v != floor(v))
        return false;
    *ret = (uint64_t)v;
    return true;
}

static int camera_line(struct scene *s, struct text *t, const char *end)
{
    struct cam c = { .model = -1 };
    const char *name;
    double v[2];
    size_t n;

    if (!numbers(t, end, v, 1) || !whole(v[0], &c.id) || !word(t, end, &name, &n))
        return bad_line(s, t, "a camera is an id, a model, a width, a height and parameters");
    for (size_t i = 0; i < COUNT(models); i++)
        if (strlen(models[i].name) == n && memcmp(models[i].name, name, n) == 0)
            c.model = (int)i;
    if (c.model < 0)
        return bad_line(s, t, "this model of a camera is not known");
    if (!numbers(t, end, v, 2) || !whole(v[0], &c.width) || !whole(v[1], &c.height) || !numbers(t, end, c.params, models[c.model].params))
        return bad_line(s, t, "a camera is an id, a model, a width, a height and parameters");
    *VEC_ADD(&s->cams) = c;
    return 0;
}

/* the line of the points that the image sees follows and may be empty */
static int image_line(struct scene *s, struct text *t, const char *end)
{
    struct shot h = { 0 };
    uint64_t id;
    double v[9];

    if (!numbers(t, end, v, 9) || !whole(v[0], &id) || !whole(v[8], &h.camera))
        return bad_line(s, t, "an image is an id, qw qx qy qz, tx ty tz, a camera and a name");
    memcpy(h.q, v + 1, sizeof(h.q));
    memcpy(h.t, v + 5, sizeof(h.t));
    t->p = skip_blank(t->p, end);
    while (end > t->p && is_blank(end[-1]))
        end--;
    if (end == t->p || end - t->p > NAME_LENGTH_MAX)
        return bad_line(s, t, "the name of an image is wanted");
    h.name = xstrndup(t->p, (size_t)(end - t->p));
    *VEC_ADD(&s->shots) = h;
    t->p = text_line_end(t);
    if (t->p < t->end) {
        t->p++;
        t->line++;
        t->p = text_line_end(t);
    }
    return 0;
}

static int parse_text(struct scene *s, const struct str *bytes, bool images)
{
    struct text t = { bytes->s, bytes->s + bytes->len, 1 };

    while (text_next(&t)) {
        const char *end = text_line_end(&t);

        if (images ? image_line(s, &t, end) : camera_line(s, &t, end))
            return -1;
        if (!images)
            t.p = end;
    }
    return 0;
}

/* ---- binary, little-endian ---- */

struct cursor {
    const char *p, *end;
};

static bool get(struct cursor *c, void *to, size_t n)
{
    if ((size_t)(c->end - c->p) < n)
        return false;
    memcpy(to, c->p, n);
    c->p += n;
    return true;
}

static int cut(const struct scene *s)
{
    return fault_set(s->fault, CODE_DATA, "file-truncated", "'%s' ends before what it says it holds", s->path);
}

static int camera_binary(struct scene *s, struct cursor *b)
{
    struct cam c = { 0 };
    uint32_t id;
    int32_t model;

    if (!get(b, &id, 4) || !get(b, &model, 4) || !get(b, &c.width, 8) || !get(b, &c.height, 8))
        return cut(s);
    if (model < 0 || (size_t)model >= COUNT(models))
        return fault_set(s->fault, CODE_DATA, NULL, "'%s': model %d of camera %u is not known", s->path, model, id);
    if (!get(b, c.params, (size_t)models[model].params * 8))
        return cut(s);
    c.id = id;
    c.model = model;
    *VEC_ADD(&s->cams) = c;
    return 0;
}

static int image_binary(struct scene *s, struct cursor *b)
{
    struct shot h = { 0 };
    uint32_t id, camera;
    uint64_t points;
    const char *nul;

    if (!get(b, &id, 4) || !get(b, h.q, sizeof(h.q)) || !get(b, h.t, sizeof(h.t)) || !get(b, &camera, 4) ||
        !(nul = memchr(b->p, 0, (size_t)(b->end - b->p))))
        return cut(s);
    h.camera = camera;
    if (nul - b->p > NAME_LENGTH_MAX)
        return fault_set(s->fault, CODE_DATA, NULL, "'%s': the name of image %u is longer than %d bytes", s->path, id, NAME_LENGTH_MAX);
    h.name = xstrndup(b->p, (size_t)(nul - b->p));
    *VEC_ADD(&s->shots) = h;
    b->p = nul + 1;
    if (!get(b, &points, 8) || points > (uint64_t)(b->end - b->p) / 24)
        return cut(s);
    b->p += points * 24;
    return 0;
}

static int parse_binary(struct scene *s, const struct str *bytes, bool images)
{
    struct cursor b = { bytes->s, bytes->s + bytes->len };
    uint64_t n;

    if (!get(&b, &n, 8))
        return cut(s);
    for (uint64_t i = 0; i < n; i++)
        if (images ? image_binary(s, &b) : camera_binary(s, &b))
            return -1;
    return 0;
}

/* ---- the model ---- */

static const char *const places[] = { "", "sparse/", "sparse/0/", "colmap/sparse/0/" };

static char *model_of(const char *path, const char *suffix)
{
    for (size_t i = 0; i < COUNT(places); i++) {
        char *cameras = xasprintf("%scameras.%s", places[i], suffix), *images = xasprintf("%simages.%s", places[i], suffix);
        bool there = folder_holds(path, cameras) && folder_holds(path, images);

        free(cameras);
        free(images);
        if (there)
            return xasprintf("%s/%s", path, places[i]);
    }
    return NULL;
}

bool colmap_there(const char *path)
{
    char *a = model_of(path, "bin"), *b = model_of(path, "txt");
    bool there = a || b;

    free(a);
    free(b);
    return there;
}

static int read_part(struct scene *s, const char *model, const char *name, bool binary)
{
    char *path = xasprintf("%s%s.%s", model, name, binary ? "bin" : "txt");
    bool images = str_eq(name, "images");
    struct str bytes = { 0 };
    int rc = data_slurp(path, (size_t)4 << 30, &bytes, s->fault);

    s->path = path;
    if (rc == 0 && bytes.s)
        rc = binary ? parse_binary(s, &bytes, images) : parse_text(s, &bytes, images);
    if (rc == 0 && (images ? s->shots.n : s->cams.n) == 0)
        rc = fault_set(s->fault, CODE_DATA, "empty-result", "'%s' holds no %s", path, name);
    s->path = NULL;
    str_release(&bytes);
    free(path);
    return rc;
}

static const struct cam *cam_of(const struct scene *s, uint64_t id)
{
    for (size_t i = 0; i < s->cams.n; i++)
        if (s->cams.v[i].id == id)
            return &s->cams.v[i];
    return NULL;
}

/* one pinhole camera for all frames */
static int set_camera(struct folder *f, const struct scene *s, const struct frames_options *o)
{
    const struct cam *first = cam_of(s, s->shots.v[0].camera);
    const struct model *m;
    int rc;

    for (size_t i = 0; i < s->shots.n; i++) {
        const struct cam *c = cam_of(s, s->shots.v[i].camera);

        if (!c)
            return fault_set(s->fault, CODE_DATA, NULL, "image '%s' names camera %llu, which the model does not have", s->shots.v[i].name,
                             (unsigned long long)s->shots.v[i].camera);
        if (c != first && (c->model != first->model || c->width != first->width || c->height != first->height ||
                           memcmp(c->params, first->params, sizeof(c->params))))
            return fault_set(s->fault, CODE_DATA, NULL, "images '%s' and '%s' have different cameras, one for all is wanted (COLMAP: "
                             "--ImageReader.single_camera 1)", s->shots.v[0].name, s->shots.v[i].name);
    }
    m = &models[first->model];
    for (int i = m->focal + 2; i < m->params; i++)
        if (first->params[i] != 0)
            return fault_set(s->fault, CODE_DATA, NULL, "camera %llu of model %s has distortions, a pinhole is wanted: colmap image_undistorter "
                             "makes such pictures", (unsigned long long)first->id, m->name);
    f->camera = (struct recon_camera){ .fx = first->params[0], .fy = first->params[m->focal - 1], .cx = first->params[m->focal] - 0.5,
                                       .cy = first->params[m->focal + 1] - 0.5 };
    if (o->intrinsics && (rc = folder_camera(f, o, s->fault)))
        return rc;
    if (!(f->camera.fx > 0 && f->camera.fy > 0) || !isfinite(f->camera.fx + f->camera.fy + f->camera.cx + f->camera.cy) ||
        first->width > PICTURE_SIDE_MAX || first->height > PICTURE_SIDE_MAX)
        return fault_set(s->fault, CODE_DATA, NULL, "camera %llu of %llu x %llu with fx %g, fy %g is none", (unsigned long long)first->id,
                         (unsigned long long)first->width, (unsigned long long)first->height, f->camera.fx, f->camera.fy);
    f->camera.width = (uint32_t)first->width;
    f->camera.height = (uint32_t)first->height;
    return 0;
}

static char *first_there(const char *folder, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (folder_holds(folder, names[i]))
            return path_join(folder, names[i]);
    return NULL;
}

static char *color_of(const char *folder, const char *name)
{
    char *names[3] = { xasprintf("images/%s", name), xstrdup(name), xasprintf("rgb/%s", name) };
    char *path = first_there(folder, (const char *const *)names, COUNT(names));

    for (size_t i = 0; i < COUNT(names); i++)
        free(names[i]);
    return path;
}

/* depth/NAME.png, depth/NAME with .png for its suffix; beside a NAME.color.SUFFIX: NAME.depth.png */
static char *depth_of(const char *folder, const char *name)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    size_t n = dot && (!slash || dot > slash) ? (size_t)(dot - name) : strlen(name);
    char *stem = xstrndup(name, n), *bare = xstrndup(name, str_ends(stem, ".color") ? n - 6 : n), *path;
    char *names[] = { xasprintf("depth/%s.png", stem),       xasprintf("depth/%s.png", name), xasprintf("depths/%s.png", stem),
                      xasprintf("images/%s.depth.png", bare), xasprintf("%s.depth.png", bare), xasprintf("depth/%s.depth.png", bare) };

    path = first_there(folder, (const char *const *)names, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++)
        free(names[i]);
    free(stem);
    free(bare);
    return path;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct shot *)a)->name, ((const struct shot *)b)->name);
}

/* world-to-camera becomes camera-to-world */
static bool invert(const struct shot *h, double pose[16])
{
    double w[16];

    if (!pose_from(h->q, h->t, w))
        return false;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            pose[4 * i + k] = w[4 * k + i];
        pose[4 * i + 3] = -(w[i] * w[3] + w[4 + i] * w[7] + w[8 + i] * w[11]);
        pose[12 + i] = 0;
    }
    pose[15] = 1;
    return true;
}

static int take(struct folder *f, const struct shot *h, const struct frames_options *o, struct fault *fault)
{
    struct frame_entry e = { .stem = xstrdup(h->name) };
    struct fault why = { 0 };

    if (!folder_name_fine(h->name))
        fault_set(&why, CODE_DATA, NULL, "the name of image '%s' is none in this folder", h->name);
    else if (!(e.depth = depth_of(f->path, h->name)))
        fault_set(&why, CODE_DATA, NULL, "image '%s' has no depth: none of the pictures that doc/format-frames.md names is there", h->name);
    else if (!invert(h, e.pose))
        fault_set(&why, CODE_DATA, "pose-invalid", "pose of '%s' is not finite or has a quaternion of no length", h->name);
    else if (!o->no_color)
        e.color = color_of(f->path, h->name);
    return folder_take(f, &e, why.err.code ? &why : NULL, o, fault);
}

int colmap_scan(struct folder *f, const struct frames_options *o, struct fault *fault)
{
    char *model = model_of(f->path, "bin");
    struct scene s = { .fault = fault };
    bool binary = model != NULL;
    int rc;

    model = model ? model : model_of(f->path, "txt");
    rc = model ? read_part(&s, model, "cameras", binary)
               : fault_set(fault, CODE_DATA, NULL, "dataset '%s' has no COLMAP model: no cameras and images, .bin or .txt, in it, sparse/ or sparse/0/",
                           f->path);
    if (rc == 0)
        rc = read_part(&s, model, "images", binary);
    if (rc == 0) {
        qsort(s.shots.v, s.shots.n, sizeof(*s.shots.v), by_name);
        rc = set_camera(f, &s, o);
    }
    for (size_t i = 0; rc == 0 && i < s.shots.n; i++)
        if (folder_wants(f, o))
            rc = take(f, &s.shots.v[i], o, fault);
    for (size_t i = 0; i < s.shots.n; i++)
        free(s.shots.v[i].name);
    free(s.shots.v);
    free(s.cams.v);
    free(model);
    return rc;
}
