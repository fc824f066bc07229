/* The RGB-D benchmark's folders (Sturm et al. 2012; TU Munich, "File Formats"): depth.txt, rgb.txt and groundtruth.txt are
 * lists by time, "seconds name" or "seconds tx ty tz qx qy qz qw", camera-to-world; '#' begins a comment. What belongs together
 * is found by time: a depth picture takes the nearest pose, and pairs with colour are taken from the nearest on, each picture
 * once, as the benchmark's associate.py does. associations.txt, where there is one, says the pairs instead. */
#include "config.h"
#include "data/geom.h"

#include <math.h>
#include <stdlib.h>

struct stamp {
    double t;
    char *name; /* of a picture */
    double pose[16];
};
struct stamps {
    struct stamp *v;
    size_t n, cap;
};
struct pair {
    double apart;
    size_t depth, color;
};

static void stamps_release(struct stamps *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].name);
    free(l->v);
    *l = (struct stamps){ 0 };
}

static int by_time(const void *a, const void *b)
{
    const struct stamp *x = a, *y = b;

    return x->t < y->t ? -1 : x->t > y->t;
}

static int by_apart(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->apart != y->apart)
        return x->apart < y->apart ? -1 : 1;
    return x->depth != y->depth ? (x->depth < y->depth ? -1 : 1) : x->color < y->color ? -1 : x->color > y->color;
}

static int bad(const char *path, const struct text *t, const char *what, struct fault *fault)
{
    return fault_set(fault, CODE_DATA, NULL, "'%s' line %llu: %s", path, (unsigned long long)t->line, what);
}

static bool number(struct text *t, const char *end, double *ret)
{
    t->p = skip_blank(t->p, end);
    while (t->p < end && *t->p == ',')
        t->p = skip_blank(t->p + 1, end);
    return number_read(&t->p, end, ret);
}

/* the next word of the line as a picture's name */
static char *name_of_picture(struct text *t, const char *end)
{
    const char *from;
    char *name;

    from = t->p = skip_blank(t->p, end);
    while (t->p < end && !is_blank(*t->p))
        t->p++;
    name = xstrndup(from, (size_t)(t->p - from));
    if (folder_name_fine(name))
        return name;
    free(name);
    return NULL;
}

static int picture_line(const char *path, struct text *t, const char *end, struct stamps *l, struct fault *fault)
{
    struct stamp s = { 0 };

    if (!number(t, end, &s.t) || !isfinite(s.t) || !(s.name = name_of_picture(t, end)))
        return bad(path, t, "a time in seconds and the name of a picture in this folder are wanted", fault);
    *VEC_ADD(l) = s;
    return 0;
}

/* a pose that is of no use stays, so that its frame is told: its first number is NaN */
static int pose_line(const char *path, struct text *t, const char *end, struct stamps *l, struct fault *fault)
{
    struct stamp s = { 0 };
    double v[7];

    if (!number(t, end, &s.t) || !isfinite(s.t))
        return bad(path, t, "a time in seconds is wanted", fault);
    for (int i = 0; i < 7; i++)
        if (!number(t, end, &v[i]))
            return bad(path, t, "a pose is tx ty tz qx qy qz qw", fault);
    if (!pose_from((double[]){ v[6], v[3], v[4], v[5] }, v, s.pose))
        s.pose[0] = NAN;
    *VEC_ADD(l) = s;
    return 0;
}

typedef int line_fn(const char *path, struct text *t, const char *end, struct stamps *l, struct fault *fault);

static int read_list(const struct folder *f, const char *file, line_fn *line, struct stamps *l, struct fault *fault)
{
    char *path = path_join(f->path, file);
    struct str s = { 0 };
    int rc = data_slurp(path, (size_t)1 << 30, &s, fault);
    struct text t = { s.s, s.s ? s.s + s.len : NULL, 1 };

    while (rc == 0 && text_next(&t)) {
        const char *end = text_line_end(&t);

        rc = line(path, &t, end, l, fault);
        t.p = end;
    }
    if (rc == 0 && !l->n)
        rc = fault_set(fault, CODE_DATA, "empty-result", "'%s' lists nothing", path);
    str_release(&s);
    free(path);
    return rc;
}

static int read_sorted(const struct folder *f, const char *file, line_fn *line, struct stamps *l, struct fault *fault)
{
    if (read_list(f, file, line, l, fault))
        return -1;
    qsort(l->v, l->n, sizeof(*l->v), by_time);
    return 0;
}

/* the last not after t, or 0 */
static size_t before(const struct stamps *l, double t)
{
    size_t low = 0, high = l->n;

    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;

        if (l->v[mid].t <= t)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static size_t nearest(const struct stamps *l, double t)
{
    size_t i = before(l, t);

    return i + 1 < l->n && fabs(l->v[i + 1].t - t) < fabs(l->v[i].t - t) ? i + 1 : i;
}

/* color[i]: of depth i, or SIZE_MAX. Of each depth only the neighbours in time are looked at. */
static void pair_up(const struct stamps *depth, const struct stamps *rgb, double most, size_t *color)
{
    struct pair *p = xcalloc(4 * depth->n + 1, sizeof(*p));
    bool *used = xcalloc(rgb->n + 1, sizeof(*used));
    size_t n = 0;

    for (size_t i = 0; i < depth->n; i++) {
        size_t k = before(rgb, depth->v[i].t), from = k ? k - 1 : 0;

        color[i] = SIZE_MAX;
        for (size_t j = from; j < rgb->n && j < from + 4; j++)
            if (fabs(rgb->v[j].t - depth->v[i].t) <= most)
                p[n++] = (struct pair){ fabs(rgb->v[j].t - depth->v[i].t), i, j };
    }
    qsort(p, n, sizeof(*p), by_apart);
    for (size_t i = 0; i < n; i++)
        if (color[p[i].depth] == SIZE_MAX && !used[p[i].color]) {
            color[p[i].depth] = p[i].color;
            used[p[i].color] = true;
        }
    free(p);
    free(used);
}

/* "t name t name" a line: the pair's depth is the one whose name holds "depth" */
static int associated_line(const char *path, struct text *t, const char *end, struct stamps *l, struct fault *fault)
{
    size_t n = l->n;

    if (picture_line(path, t, end, l, fault) || picture_line(path, t, end, l, fault))
        return -1;
    if (strstr(l->v[n + 1].name, "depth") && !strstr(l->v[n].name, "depth")) {
        struct stamp s = l->v[n];

        l->v[n] = l->v[n + 1];
        l->v[n + 1] = s;
    }
    return 0;
}

static const char *association_file(const struct folder *f)
{
    static const char *const names[] = { "associations.txt", "associate.txt", "association.txt" };

    for (size_t i = 0; i < COUNT(names); i++)
        if (folder_holds(f->path, names[i]))
            return names[i];
    return NULL;
}

static int take(struct folder *f, const struct stamp *depth, const struct stamp *color, const struct stamps *poses,
                const struct frames_options *o, struct fault *fault)
{
    struct frame_entry e = { .stem = xstrdup(depth->name), .depth = path_join(f->path, depth->name) };
    const struct stamp *at = &poses->v[nearest(poses, depth->t)];
    double most = o->association > 0 ? o->association : 0.02, apart = fabs(at->t - depth->t);
    struct fault why = { 0 };

    if (color && !o->no_color)
        e.color = path_join(f->path, color->name);
    memcpy(e.pose, at->pose, sizeof(e.pose));
    if (apart > most)
        fault_set(&why, CODE_DATA, "pose-invalid", "'%s' of %.6f s has no pose: the nearest in groundtruth.txt is %.6f s away, at most %g "
                  "(association) are taken", depth->name, depth->t, apart, most);
    else if (isnan(at->pose[0]))
        fault_set(&why, CODE_DATA, "pose-invalid", "the pose of %.6f s in groundtruth.txt is not finite or has a quaternion of no length", at->t);
    return folder_take(f, &e, why.err.code ? &why : NULL, o, fault);
}

static int take_pairs(struct folder *f, const struct stamps *pairs, const struct stamps *poses, const struct frames_options *o, struct fault *fault)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i + 1 < pairs->n; i += 2)
        if (folder_wants(f, o))
            rc = take(f, &pairs->v[i], &pairs->v[i + 1], poses, o, fault);
    return rc;
}

static int take_by_time(struct folder *f, const struct stamps *poses, const struct frames_options *o, struct fault *fault)
{
    struct stamps depth = { 0 }, rgb = { 0 };
    size_t *color = NULL;
    int rc = read_sorted(f, "depth.txt", picture_line, &depth, fault);

    if (rc == 0 && !o->no_color && folder_holds(f->path, "rgb.txt"))
        rc = read_sorted(f, "rgb.txt", picture_line, &rgb, fault);
    if (rc == 0) {
        color = xcalloc(depth.n, sizeof(*color));
        pair_up(&depth, &rgb, o->association > 0 ? o->association : 0.02, color);
    }
    for (size_t i = 0; rc == 0 && i < depth.n; i++)
        if (folder_wants(f, o))
            rc = take(f, &depth.v[i], color[i] == SIZE_MAX ? NULL : &rgb.v[color[i]], poses, o, fault);
    free(color);
    stamps_release(&depth);
    stamps_release(&rgb);
    return rc;
}

int tum_scan(struct folder *f, const struct frames_options *o, struct fault *fault)
{
    const char *pairs_file = association_file(f);
    struct stamps poses = { 0 }, pairs = { 0 };
    int rc = folder_camera(f, o, fault);

    if (rc > 0) { /* the benchmark's folders have none: what it recommends for all its cameras */
        f->camera = (struct recon_camera){ .fx = 525, .fy = 525, .cx = 319.5, .cy = 239.5 };
        if (o->warn)
            o->warn(o->warn_self, NULL, "camera", "no camera-intrinsics.txt and no intrinsics: 525 525 319.5 239.5, the benchmark's default, are taken");
        rc = 0;
    }
    if (rc == 0)
        rc = read_sorted(f, "groundtruth.txt", pose_line, &poses, fault);
    if (rc == 0 && pairs_file)
        rc = read_list(f, pairs_file, associated_line, &pairs, fault);
    if (rc == 0)
        rc = pairs_file ? take_pairs(f, &pairs, &poses, o, fault) : take_by_time(f, &poses, o, fault);
    stamps_release(&poses);
    stamps_release(&pairs);
    return rc;
}
