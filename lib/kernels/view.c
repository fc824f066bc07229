#include "config.h"
#include "kernels/plan.h"
#include "kernels/rows.h"

#include <math.h>

static struct vec3 cross(struct vec3 a, struct vec3 b)
{
    return v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

/* From where the eye looks at the box, in (right, up, back) of the front view. */
static const float places[][3] = {
    [PREVIEW_VIEW_ISO] = {0.62f, 0.85f, 0.8f}, [PREVIEW_VIEW_TOP] = {0, 1, 0.02f},
    [PREVIEW_VIEW_FRONT] = {0, 0.12f, 1},      [PREVIEW_VIEW_BACK] = {0, 0.12f, -1},
    [PREVIEW_VIEW_LEFT] = {-1, 0.12f, 0},      [PREVIEW_VIEW_RIGHT] = {1, 0.12f, 0},
    [PREVIEW_VIEW_INSIDE] = {0, 0.25f, 1},
};

void preview_box(const struct recon_volume *v, const uint64_t *counts, double box[6])
{
    for (int a = 0; a < 3; a++) {
        uint64_t whole = 0, low = 0, high = 0;
        uint32_t first = 0, last = v->dim[a] - 1;

        for (uint32_t i = 0; i < v->dim[a]; i++)
            whole += counts[i];
        while (first < last && (low += counts[first]) <= whole / 100)
            first++;
        while (last > first && (high += counts[last]) <= whole / 100)
            last--;
        box[2 * a] = v->origin[a] + v->voxel * first;
        box[2 * a + 1] = v->origin[a] + v->voxel * last;
        counts += v->dim[a];
    }
}

/* How far from the middle of a box the eye must be so that its eight corners are in the picture. */
static float distance_to(const float half[3], struct vec3 f, struct vec3 right, float tan_x, float tan_y)
{
    struct vec3 down = cross(f, right);
    float least = 0;

    for (int i = 0; i < 8; i++) {
        struct vec3 c =
            v3(i & 1 ? half[0] : -half[0], i & 2 ? half[1] : -half[1], i & 4 ? half[2] : -half[2]);
        float x = fabsf(v3_dot(c, right)) / tan_x, y = fabsf(v3_dot(c, down)) / tan_y,
              d = maxf(x, y) - v3_dot(c, f);

        least = maxf(least, d);
    }
    return 1.04f * least;
}

void preview_view(const struct recon_volume *v, const struct recon_value *p, struct view *ret)
{
    preview_view_box(v, p, NULL, ret);
}

void preview_view_box(const struct recon_volume *v, const struct recon_value *p, const double *box,
                      struct view *ret)
{
    static const float ups[][3] = { { 0, -1, 0 }, { 0, 1, 0 }, { 0, 0, -1 }, { 0, 0, 1 } };
    int which = (int)p[PREVIEW_VIEW].i, axis = (int)p[PREVIEW_UP].i;
    const float *u = ups[axis], *from = places[which];
    struct vec3 up = v3(u[0], u[1], u[2]), back, right, centre, f, eye;
    float half[3], middle[3], reach = 0, radius, fov = which == PREVIEW_VIEW_INSIDE ? 1.25f : 0.62f, far_off,
                              pixel;
    uint32_t w = (uint32_t)p[PREVIEW_WIDTH].i, h = (uint32_t)p[PREVIEW_HEIGHT].i;

    for (int a = 0; a < 3; a++) {
        double low = box ? box[2 * a] : v->origin[a],
               high = box ? box[2 * a + 1] : v->origin[a] + v->voxel * (v->dim[a] - 1);

        half[a] = (float)((high - low) / 2);
        middle[a] = (float)((high + low) / 2);
        reach += (float)(v->voxel * v->dim[a] * v->voxel * v->dim[a]);
    }
    centre = v3(middle[0], middle[1], middle[2]);
    radius = sqrtf(half[0] * half[0] + half[1] * half[1] + half[2] * half[2]);
    back = axis < 2 ? v3(0, 0, -1) : v3(0, -1, 0); /* the front view looks along +z, or +y where z is up */
    right = cross(up, back);
    if (axis == 1 || axis == 2)
        right = v3_mul(cross(back, up), -1);
    f = v3_add(v3_mul(right, -from[0]), v3_add(v3_mul(up, -from[1]), v3_mul(back, -from[2])));
    f = v3_unit(f);
    right = v3_unit(cross(f, up));
    pixel = 2 * tanf(fov / 2) / (float)(w < h ? w : h);
    far_off = which == PREVIEW_VIEW_INSIDE
                  ? 0
                  : distance_to(half, f, right, pixel * (float)w / 2, pixel * (float)h / 2);
    eye = v3_sub(centre, v3_mul(f, far_off));
    ret->eye = eye;
    ret->forward = f;
    ret->right = v3_mul(right, pixel);
    ret->down = v3_mul(cross(f, right), pixel);
    ret->world_down = v3_mul(up, -1);
    ret->tmax = far_off + radius + 2 * sqrtf(reach);
    ret->width = w;
    ret->height = h;
}
