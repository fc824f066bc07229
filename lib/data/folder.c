#include "config.h"
#include "data/data_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_SUFFIX ".depth.png"

void folder_release(struct folder *f)
{
    for (size_t i = 0; i < f->frames.n; i++) {
        free(f->frames.v[i].stem);
        free(f->frames.v[i].depth);
        free(f->frames.v[i].color);
    }
    free(f->frames.v);
    free(f->path);
    *f = (struct folder){ 0 };
}

bool folder_holds(const char *path, const char *name)
{
    char *full = path_join(path, name);
    struct stat st;
    bool there = stat(full, &st) == 0;

    free(full);
    return there;
}

bool folder_name_fine(const char *name)
{
    struct strv parts = { 0 };
    bool fine;

    strv_split(&parts, name, "/");
    fine = name[0] && name[0] != '/' && !strv_has(&parts, "..");
    strv_release(&parts);
    return fine;
}

/* ---- 7-Scenes ---- */

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* stems of all depth pictures, in order */
static int list_stems(const char *path, struct strv *stems, struct strv *names, struct fault *fault)
{
    struct dirent *e;
    DIR *d;

    if (!(d = opendir(path)))
        return fault_set(fault, CODE_DATA, NULL, "cannot read dataset '%s': %s", path, strerror(errno));
    while ((e = readdir(d))) {
        size_t n = strlen(e->d_name);

        strv_add(names, e->d_name);
        if (e->d_name[0] != '.' && n > sizeof(DEPTH_SUFFIX) - 1 && str_ends(e->d_name, DEPTH_SUFFIX)) {
            char *stem = xstrndup(e->d_name, n - (sizeof(DEPTH_SUFFIX) - 1));

            strv_add(stems, stem);
            free(stem);
        }
    }
    closedir(d);
    if (names->n)
        qsort(names->v, names->n, sizeof(char *), by_name);
    if (!stems->n)
        return fault_set(fault, CODE_DATA, NULL, "dataset '%s' holds no frame: no file '*%s'", path,
                         DEPTH_SUFFIX);
    qsort(stems->v, stems->n, sizeof(char *), by_name);
    return 0;
}

static bool listed(const struct strv *names, const char *stem, const char *suffix)
{
    char *name = xasprintf("%s.%s", stem, suffix);
    bool found = bsearch(&name, names->v, names->n, sizeof(char *), by_name) != NULL;

    free(name);
    return found;
}

static int read_pose(const char *path, double pose[16], struct fault *fault)
{
    struct str text = { 0 };
    int rc = data_slurp(path, 65536, &text, fault);

    if (rc)
        fault->rule = "pose-invalid";
    if (rc == 0)
        rc = pose_parse(text.s, text.len, path, pose, fault);
    str_release(&text);
    return rc;
}

static int scenes_frame(struct folder *f, const char *stem, const struct strv *names, const struct frames_options *o, struct fault *fault)
{
    const char *color = o->no_color ? NULL : listed(names, stem, "color.jpg") ? "color.jpg" : listed(names, stem, "color.png") ? "color.png" : NULL;
    struct frame_entry e = { .stem = xstrdup(stem), .depth = xasprintf("%s/%s%s", f->path, stem, DEPTH_SUFFIX) };
    char *pose = xasprintf("%s/%s.pose.txt", f->path, stem);
    struct fault why = { 0 };
    int rc;

    if (color)
        e.color = xasprintf("%s/%s.%s", f->path, stem, color);
    rc = read_pose(pose, e.pose, &why);
    free(pose);
    return folder_take(f, &e, rc ? &why : NULL, o, fault);
}

static int scenes_scan(struct folder *f, const struct frames_options *o, struct fault *fault)
{
    struct strv stems = { 0 }, names = { 0 };
    int rc = list_stems(f->path, &stems, &names, fault);

    if (rc == 0 && (rc = folder_camera(f, o, fault)) > 0)
        rc = fault_set(fault, CODE_DATA, NULL, "cannot open '%s/camera-intrinsics.txt': %s", f->path, strerror(ENOENT));
    for (size_t i = 0; rc == 0 && i < stems.n; i++)
        if (folder_wants(f, o))
            rc = scenes_frame(f, stems.v[i], &names, o, fault);
    strv_release(&stems);
    strv_release(&names);
    return rc;
}

/* ---- what the layouts share ---- */

/* the header of a frame's depth: 16-bit grey of the first one's size */
static int check_depth(struct folder *f, const char *path, struct fault *fault)
{
    struct picture p;
    int rc = png_probe(path, &p, fault);

    if (rc == 0 && (p.bits != 16 || p.channels != 1))
        rc = fault_set(fault, CODE_DATA, "depth-8bit",
                       "'%s' has %u channel(s) of %u bits, depth is 1 of 16: write it as 16-bit PNG", path,
                       p.channels, p.bits);
    if (rc == 0 && !f->camera.width) {
        f->camera.width = p.width;
        f->camera.height = p.height;
    }
    if (rc == 0 && (p.width != f->camera.width || p.height != f->camera.height))
        rc = fault_set(fault, CODE_DATA, NULL, "'%s' has %u x %u pixels, the frames before it have %u x %u",
                       path, p.width, p.height, f->camera.width, f->camera.height);
    return rc;
}

int folder_camera(struct folder *f, const struct frames_options *o, struct fault *fault)
{
    char *path = path_join(f->path, "camera-intrinsics.txt");
    struct str text = { 0 };
    int rc = 1;

    if (o->intrinsics) {
        const double *k = o->intrinsics;

        rc = k[0] > 0 && k[1] > 0 ? 0 : fault_set(fault, CODE_USAGE, NULL, "intrinsics: fx %g and fy %g must be above 0", k[0], k[1]);
        f->camera = (struct recon_camera){ .fx = k[0], .fy = k[1], .cx = k[2], .cy = k[3] };
    } else if (folder_holds(f->path, "camera-intrinsics.txt")) {
        rc = data_slurp(path, 65536, &text, fault);
        if (rc == 0)
            rc = camera_parse(text.s, text.len, path, &f->camera, fault);
    }
    str_release(&text);
    free(path);
    return rc;
}

bool folder_wants(struct folder *f, const struct frames_options *o)
{
    bool wanted = f->seen++ % (o->every ? o->every : 1) == 0 && (!o->limit || f->taken < o->limit);

    f->taken += wanted;
    return wanted;
}

static void entry_release(struct frame_entry *e)
{
    free(e->stem);
    free(e->depth);
    free(e->color);
}

static int skip(struct folder *f, struct frame_entry *e, const struct fault *why, const struct frames_options *o, struct fault *fault)
{
    char *text = xasprintf("%s; the frame is skipped", why->err.text);

    f->skipped++;
    if (o->stop_on_bad)
        *fault = *why;
    else if (o->warn)
        o->warn(o->warn_self, why->rule, e->stem, text);
    free(text);
    entry_release(e);
    return o->stop_on_bad ? -1 : 0;
}

int folder_take(struct folder *f, struct frame_entry *e, const struct fault *why, const struct frames_options *o, struct fault *fault)
{
    struct fault local = { 0 };

    e->index = f->seen - 1;
    if (why)
        return skip(f, e, why, o, fault);
    pose_convert(e->pose, o);
    if (pose_check(e->pose, e->stem, &local))
        return skip(f, e, &local, o, fault);
    if (check_depth(f, e->depth, fault)) {
        entry_release(e);
        return -1;
    }
    f->colored |= e->color != NULL;
    *VEC_ADD(&f->frames) = *e;
    return 0;
}

static int check_folder(const char *path, struct fault *fault)
{
    struct stat st;

    if (stat(path, &st))
        return fault_set(fault, CODE_DATA, NULL, "cannot open dataset '%s': %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return fault_set(fault, CODE_DATA, NULL, "dataset '%s' is %s, a folder of frames is wanted", path,
                         S_ISREG(st.st_mode)    ? "a file"
                         : S_ISFIFO(st.st_mode) ? "a FIFO"
                                                : "a device or socket");
    return 0;
}

static enum frames_layout layout_of(const char *path)
{
    if (folder_holds(path, "depth.txt") || folder_holds(path, "groundtruth.txt"))
        return FRAMES_TUM;
    return colmap_there(path) ? FRAMES_COLMAP : FRAMES_7SCENES;
}

static int check_options(const struct frames_options *o, struct fault *fault)
{
    struct fault why = { 0 };

    if (o->transform && pose_check(o->transform, "transform", &why))
        return fault_set(fault, CODE_USAGE, NULL, "%s: cameras cannot be mirrored or stretched; mesh.transform can do that to a mesh", why.err.text);
    return 0;
}

int folder_scan(const char *path, const struct frames_options *o, struct folder *ret, struct fault *fault)
{
    struct folder f = { .path = xstrdup(path) };
    struct fault none;
    int rc;

    if (!fault)
        fault = &none;
    rc = check_options(o, fault);
    if (rc == 0)
        rc = check_folder(path, fault);
    if (rc == 0) {
        enum frames_layout layout = o->layout ? o->layout : layout_of(path);

        f.depth_scale = o->depth_scale > 0 ? o->depth_scale : layout == FRAMES_TUM ? 0.0002 : 0.001;
        rc = layout == FRAMES_TUM ? tum_scan(&f, o, fault) : layout == FRAMES_COLMAP ? colmap_scan(&f, o, fault) : scenes_scan(&f, o, fault);
    }
    if (rc == 0 && (f.frames.n < f.skipped || !f.frames.n))
        rc = fault_set(fault, CODE_DATA, "pose-invalid",
                       "dataset '%s': only %zu of %llu frames have a usable pose, half are wanted", path,
                       f.frames.n, (unsigned long long)(f.frames.n + f.skipped));
    if (rc)
        folder_release(&f);
    else
        *ret = f;
    return rc;
}
