#include "config.h"
#include "data/data_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_SUFFIX ".depth.png"

char *folder_file(const struct folder *f, const struct frame_entry *e, const char *suffix)
{
    return xasprintf("%s/%s.%s", f->path, e->stem, suffix);
}

void folder_release(struct folder *f)
{
    for (size_t i = 0; i < f->frames.n; i++)
        free(f->frames.v[i].stem);
    free(f->frames.v);
    free(f->path);
    *f = (struct folder){ 0 };
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* stems of all depth pictures, in order */
static int list_stems(const char *path, struct strv *stems, struct strv *names, struct fault *fault)
{
    struct stat st;
    struct dirent *e;
    DIR *d;

    if (stat(path, &st))
        return fault_set(fault, CODE_DATA, NULL, "cannot open dataset '%s': %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return fault_set(fault, CODE_DATA, NULL, "dataset '%s' is %s, a folder of frames is wanted", path,
                         S_ISREG(st.st_mode)    ? "a file"
                         : S_ISFIFO(st.st_mode) ? "a FIFO"
                                                : "a device or socket");
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

static int read_pose(const struct folder *f, struct frame_entry *e, struct fault *fault)
{
    char *path = folder_file(f, e, "pose.txt");
    struct str text = { 0 };
    int rc = data_slurp(path, 65536, &text, fault);

    if (rc && fault)
        fault->rule = "pose-invalid";
    if (rc == 0)
        rc = pose_parse(text.s, text.len, path, e->pose, fault);
    if (rc == 0)
        rc = pose_check(e->pose, e->stem, fault);
    str_release(&text);
    free(path);
    return rc;
}

/* the header of a frame's depth: 16-bit grey of the first one's size */
static int check_depth(struct folder *f, const struct frame_entry *e, struct fault *fault)
{
    char *path = folder_file(f, e, "depth.png");
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
    free(path);
    return rc;
}

static int read_camera(struct folder *f, struct fault *fault)
{
    char *path = path_join(f->path, "camera-intrinsics.txt");
    struct str text = { 0 };
    int rc = data_slurp(path, 65536, &text, fault);

    if (rc == 0)
        rc = camera_parse(text.s, text.len, path, &f->camera, fault);
    str_release(&text);
    free(path);
    return rc;
}

static void warn(const struct frames_options *o, const char *object, const struct fault *why)
{
    char *text = xasprintf("%s; the frame is skipped", why->err.text);

    if (o->warn)
        o->warn(o->warn_self, why->rule, object, text);
    free(text);
}

static int add_frame(struct folder *f, const char *stem, uint64_t index, const struct strv *names,
                     const struct frames_options *o, struct fault *fault)
{
    struct frame_entry e = { .stem = xstrdup(stem), .index = index };
    struct fault why = { 0 };

    if (read_pose(f, &e, &why)) {
        if (o->stop_on_bad) {
            *fault = why;
            free(e.stem);
            return -1;
        }
        warn(o, stem, &why);
        f->skipped++;
        free(e.stem);
        return 0;
    }
    if (check_depth(f, &e, fault)) {
        free(e.stem);
        return -1;
    }
    if (!o->no_color)
        snprintf(e.color, sizeof(e.color), "%s",
                 listed(names, stem, "color.jpg")   ? "color.jpg"
                 : listed(names, stem, "color.png") ? "color.png"
                                                    : "");
    f->colored |= e.color[0] != 0;
    *VEC_ADD(&f->frames) = e;
    return 0;
}

int folder_scan(const char *path, const struct frames_options *o, struct folder *ret, struct fault *fault)
{
    struct folder f = { .path = xstrdup(path) };
    struct strv stems = { 0 }, names = { 0 };
    uint64_t every = o->every ? o->every : 1, taken = 0;
    struct fault none;
    int rc;

    if (!fault)
        fault = &none;
    rc = list_stems(path, &stems, &names, fault);
    if (rc == 0)
        rc = read_camera(&f, fault);
    for (uint64_t i = 0; rc == 0 && i < stems.n; i += every) {
        if (o->limit && taken++ >= o->limit)
            break;
        rc = add_frame(&f, stems.v[i], i, &names, o, fault);
    }
    if (rc == 0 && f.frames.n < f.skipped)
        rc = fault_set(fault, CODE_DATA, "pose-invalid",
                       "dataset '%s': only %zu of %llu frames have a usable pose, half are wanted", path,
                       f.frames.n, (unsigned long long)(f.frames.n + f.skipped));
    strv_release(&stems);
    strv_release(&names);
    if (rc)
        folder_release(&f);
    else
        *ret = f;
    return rc;
}
