/* kernels/render.h - one pixel of scene.render_rgbd and of render.preview, the same on every device. C11 and
 * CUDA. */
#ifndef KERNELS_RENDER_H
#define KERNELS_RENDER_H

#include "kernels/march.h"
#include "kernels/plan.h"

/* ---- scene.render_rgbd ---- */

struct scene_view {
    float r[9], t[3]; /* camera to world */
    float fx, fy, cx, cy, noise, depth_max;
    uint32_t width, height, seed, frame;
};

/* Depth in millimetres (0: none) and colour (0..255) of pixel (u, v); list: shapes of its tile, NULL: all.
 * With noise the ray is shifted within a pixel or so, which frays edges as a Kinect does. */
KERN_HD uint32_t scene_pixel(const struct scene *s, const uint16_t *list, int n, const struct scene_view *c,
                             uint32_t u, uint32_t v, uint8_t rgb[3])
{
    uint32_t pixel = v * c->width + u;
    float du = c->noise * 0.4f * scene_normal(scene_hash(c->seed, c->frame, pixel, 1));
    float dv = c->noise * 0.4f * scene_normal(scene_hash(c->seed, c->frame, pixel, 2));
    float x = ((float)u + du - c->cx) / c->fx, y = ((float)v + dv - c->cy) / c->fy, t, z, color[3];
    struct vec3 o = v3(c->t[0], c->t[1], c->t[2]), d, p, normal;
    struct march_field f = march_scene(s, list, n);
    int prim, i;

    d = v3_unit(v3(c->r[0] * x + c->r[1] * y + c->r[2], c->r[3] * x + c->r[4] * y + c->r[5],
                   c->r[6] * x + c->r[7] * y + c->r[8]));
    t = march_ray(&f, o, d, 0.05f, 60.0f, &prim);
    if (t < 0.0f || prim < 0) {
        rgb[0] = rgb[1] = rgb[2] = 0;
        return 0;
    }
    p = v3_add(o, v3_mul(d, t));
    if (!march_normal(&f, p, prim, &normal))
        normal = v3_mul(d, -1.0f);
    scene_shade(s, prim, p, normal, color);
    for (i = 0; i < 3; i++)
        rgb[i] = (uint8_t)clampf(
            color[i] + 2.0f * c->noise * scene_normal(scene_hash(c->seed, c->frame, pixel, 5 + (uint32_t)i)) +
                0.5f,
            0.0f, 255.0f);
    z = t / sqrtf(1.0f + x * x + y * y);
    return z > c->depth_max ? 0 : scene_sense(z, -v3_dot(d, normal), c->noise, c->seed, c->frame, pixel);
}

/* Whether a depth is lost at an edge: mm of the pixel and of its four neighbours (0 beyond the picture). */
KERN_HD int scene_edge_lost(const struct scene_view *c, uint32_t pixel, uint32_t mm, const uint32_t around[4])
{
    uint32_t least = 20 + mm / 20;
    int i, edge = 0;

    for (i = 0; i < 4; i++)
        edge |= around[i] && (around[i] > mm ? around[i] - mm : mm - around[i]) > least;
    return edge && scene_unit(scene_hash(c->seed, c->frame, pixel, 9)) < 0.35f * minf(c->noise, 1.0f);
}

/* ---- render.preview ---- */

/* Mean colour of the observed corners around p, by trilinear weights; 0 where there is none. */
KERN_HD int preview_color(const struct march_field *f, const uint8_t *rgb, struct vec3 p, float ret[3])
{
    float g[3], w[3], sum = 0;
    int i, c;

    g[0] = (p.x - f->origin[0]) / f->voxel;
    g[1] = (p.y - f->origin[1]) / f->voxel;
    g[2] = (p.z - f->origin[2]) / f->voxel;
    ret[0] = ret[1] = ret[2] = 0;
    for (i = 0; i < 3; i++) {
        float b = floorf(g[i]);
        if (!(b >= 0.0f && b < (float)f->dim[i] - 1.0f))
            return 0;
        w[i] = g[i] - b;
        g[i] = b;
    }
    for (i = 0; i < 8; i++) {
        uint64_t q = march_place(f, g, i);
        float k = (i & 1 ? w[0] : 1 - w[0]) * (i & 2 ? w[1] : 1 - w[1]) * (i & 4 ? w[2] : 1 - w[2]);
        if (q == BLOCKS_NONE || (f->weight && !(f->weight[q] > 0.0f)))
            continue;
        sum += k;
        for (c = 0; c < 3; c++)
            ret[c] += k * (float)rgb[3 * q + (uint64_t)c];
    }
    for (c = 0; c < 3 && sum > 0; c++)
        ret[c] /= sum;
    return sum > 0;
}

/* How open the space before a surface is, 0 to 1: distances along the normal against what a plane would give.
 */
KERN_HD float preview_open(const struct march_field *f, struct vec3 p, struct vec3 n)
{
    float lost = 0, d;
    int i;

    for (i = 1; i <= 3; i++) {
        float h = f->truncation * 0.28f * (float)i;
        if (march_sample(f, v3_add(p, v3_mul(n, h)), &d) && d < h)
            lost += (h - d) / h;
    }
    return 1.0f - 0.25f * lost;
}

/* Colour of the ray through (x, y), pixels from the centre of the picture: 0..255. rgb NULL: clay. */
KERN_HD void preview_ray(const struct march_field *f, const uint8_t *rgb, const struct view *w, float x,
                         float y, float ret[3])
{
    struct vec3 d = v3_unit(v3_add(w->forward, v3_add(v3_mul(w->right, x), v3_mul(w->down, y)))), p, n,
                up = v3_mul(v3_unit(w->world_down), -1);
    float t0 = 0.01f, t1 = w->tmax, t = -1, light, c[3];
    int prim, i;

    if (march_clip(f, w->eye, d, &t0, &t1))
        t = march_ray(f, w->eye, d, t0 + 1e-4f, t1, &prim);
    p = v3_add(w->eye, v3_mul(d, t));
    if (t < 0 || !march_normal(f, p, 0, &n)) {
        float sky = 0.5f + 0.5f * v3_dot(d, up);
        for (i = 0; i < 3; i++)
            ret[i] = 205.0f + 38.0f * sky + (i == 2 ? 8.0f : 0.0f);
        return;
    }
    light = rgb ? 0.72f : 0.5f;
    light +=
        (1.02f - light) *
        (0.55f * maxf(-v3_dot(d, n), 0.0f) +
         0.45f *
             maxf(v3_dot(n, v3_unit(v3_sub(up, v3_add(v3_mul(v3_unit(w->right), 0.6f), v3_mul(d, 0.5f))))),
                  0.0f));
    light *= preview_open(f, p, n);
    if (!rgb || !preview_color(f, rgb, p, c)) {
        c[0] = 226;
        c[1] = 214;
        c[2] = 198;
    }
    for (i = 0; i < 3; i++)
        ret[i] = clampf(c[i] * light * (rgb ? 1.18f : 1.08f), 0.0f, 255.0f);
}

/* Pixel (u, v) with samples * samples rays. */
KERN_HD void preview_pixel(const struct march_field *f, const uint8_t *rgb, const struct view *w, uint32_t u,
                           uint32_t v, int samples, uint8_t ret[3])
{
    float sum[3] = { 0, 0, 0 }, c[3], part = 1.0f / (float)samples;
    int i, j, k;

    for (j = 0; j < samples; j++)
        for (i = 0; i < samples; i++) {
            preview_ray(f, rgb, w, (float)u + ((float)i + 0.5f) * part - 0.5f * (float)w->width,
                        (float)v + ((float)j + 0.5f) * part - 0.5f * (float)w->height, c);
            for (k = 0; k < 3; k++)
                sum[k] += c[k];
        }
    for (k = 0; k < 3; k++)
        ret[k] = (uint8_t)(sum[k] * part * part + 0.5f);
}

#endif
