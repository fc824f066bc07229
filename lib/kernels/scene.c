/* The scenes: shapes placed with numbers that a hash draws from the seed. Heights are y, downwards: the floor
 * is at FLOOR, an object of height h stands at FLOOR - h. */
#include "config.h"
#include "kernels/rows.h"
#include "kernels/scene.h"

#include <stdbool.h>
#include <string.h>

#define FLOOR 1.2f
#define CEILING -1.4f

struct maker {
    struct scene *s;
    uint32_t drawn;
};

static float draw(struct maker *m, float low, float high)
{
    return low + (high - low) * scene_unit(scene_hash(m->s->seed, 0x5ce7e, m->drawn++, 0));
}

static void color_set(float c[3], float r, float g, float b)
{
    c[0] = r;
    c[1] = g;
    c[2] = b;
}

/* one of a dozen calm colours, and a darker one beside it */
static void color_draw(struct maker *m, float c[2][3])
{
    static const float palette[][3] = {{.80f, .30f, .25f}, {.92f, .72f, .30f}, {.35f, .55f, .75f},
                                       {.45f, .65f, .40f}, {.75f, .50f, .35f}, {.60f, .45f, .70f},
                                       {.90f, .85f, .75f}, {.30f, .40f, .45f}, {.85f, .55f, .60f},
                                       {.40f, .70f, .70f}, {.95f, .90f, .85f}, {.55f, .35f, .25f}};
    const float *p = palette[(int)draw(m, 0, 11.99f)];

    for (int i = 0; i < 3; i++) {
        c[0][i] = p[i];
        c[1][i] = p[i] * 0.6f;
    }
}

static float reach_of(const struct scene_prim *p)
{
    const float *h = p->size;

    switch (p->kind) {
    case PRIM_ROOM:
        return 0;
    case PRIM_BOX:
        return sqrtf(h[0] * h[0] + h[1] * h[1] + h[2] * h[2]);
    case PRIM_SPHERE:
        return h[0];
    case PRIM_CYLINDER:
        return sqrtf(h[0] * h[0] + h[1] * h[1]);
    default: /* a torus: ring and tube; a capsule: radius and half height */
        return h[0] + h[1];
    }
}

static struct scene_prim *add(struct maker *m, int kind, const float at[3], const float size[3], float turn)
{
    struct scene_prim *p = &m->s->prim[m->s->n < SCENE_PRIMS ? m->s->n++ : SCENE_PRIMS - 1];

    memset(p, 0, sizeof(*p));
    p->kind = kind;
    memcpy(p->at, at, sizeof(p->at));
    memcpy(p->size, size, sizeof(p->size));
    p->turn[0] = cosf(turn);
    p->turn[1] = sinf(turn);
    p->scale = 0.1f;
    p->reach = reach_of(p);
    color_draw(m, p->color);
    return p;
}
#define XYZ(...) ((const float[3]){ __VA_ARGS__ })

/* a box that stands with its foot at height y */
static struct scene_prim *box(struct maker *m, float x, float y, float z, float w, float h, float d,
                              float turn)
{
    struct scene_prim *p = add(m, PRIM_BOX, XYZ(x, y - h / 2, z), XYZ(w / 2, h / 2, d / 2), turn);

    p->rounding = 0.01f;
    return p;
}

static struct scene_prim *wood(struct scene_prim *p)
{
    color_set(p->color[0], .62f, .44f, .28f);
    color_set(p->color[1], .42f, .27f, .16f);
    p->pattern = PATTERN_STRIPES;
    p->scale = 0.12f;
    return p;
}

static void room(struct maker *m, float x, float z, int floor_pattern)
{
    struct scene_prim *p =
        add(m, PRIM_ROOM, XYZ(0, (FLOOR + CEILING) / 2, 0), XYZ(x, (FLOOR - CEILING) / 2, z), 0);
    float c[2][3];

    p->pattern = floor_pattern;
    p->scale = floor_pattern == PATTERN_CHECKER ? 0.4f : 0.15f;
    color_draw(m, c);
    for (int i = 0; i < 3; i++) { /* walls: a light tint */
        m->s->room_color[0][0][i] = 0.55f + 0.4f * c[0][i];
        m->s->room_color[0][1][i] = 0.75f * m->s->room_color[0][0][i];
        m->s->room_color[2][0][i] = m->s->room_color[2][1][i] = 0.95f;
    }
    color_set(m->s->room_color[1][0], .70f, .55f, .40f);
    color_set(m->s->room_color[1][1], .45f, .32f, .22f);
    if (floor_pattern == PATTERN_CHECKER) {
        color_set(m->s->room_color[1][0], .85f, .83f, .78f);
        color_set(m->s->room_color[1][1], .35f, .38f, .42f);
    }
}

/* local place in a group that is turned about (x, z) */
static void turned(float x, float z, float turn, float dx, float dz, float *rx, float *rz)
{
    *rx = x + dx * cosf(turn) - dz * sinf(turn);
    *rz = z + dx * sinf(turn) + dz * cosf(turn);
}

static void table(struct maker *m, float x, float z, float w, float d, float h, float turn)
{
    float rx, rz;

    wood(box(m, x, FLOOR - h + 0.04f, z, w, 0.04f, d, turn));
    for (int i = 0; i < 4; i++) {
        turned(x, z, turn, (i & 1 ? 1 : -1) * (w / 2 - 0.06f), (i & 2 ? 1 : -1) * (d / 2 - 0.06f), &rx, &rz);
        wood(add(m, PRIM_CYLINDER, XYZ(rx, FLOOR - (h - 0.04f) / 2, rz), XYZ(0.03f, (h - 0.04f) / 2, 0), 0));
    }
}

static void sofa(struct maker *m, float x, float z, float w, float turn)
{
    float c[2][3], rx, rz;
    struct scene_prim *p[5];

    color_draw(m, c);
    p[0] = box(m, x, FLOOR, z, w, 0.42f, 0.85f, turn);
    turned(x, z, turn, 0, 0.35f, &rx, &rz);
    p[1] = box(m, rx, FLOOR, rz, w, 0.85f, 0.2f, turn);
    for (int i = 0; i < 2; i++) {
        turned(x, z, turn, (i ? 1 : -1) * (w / 2), 0, &rx, &rz);
        p[2 + i] = box(m, rx, FLOOR, rz, 0.18f, 0.6f, 0.85f, turn);
    }
    turned(x, z, turn, draw(m, -0.3f, 0.3f) * w, 0.15f, &rx, &rz);
    p[4] = box(m, rx, FLOOR - 0.42f, rz, 0.42f, 0.36f, 0.16f, turn + draw(m, -0.3f, 0.3f));
    p[4]->pattern = PATTERN_CHECKER;
    p[4]->scale = 0.07f;
    for (int i = 0; i < 5; i++) {
        p[i]->rounding = 0.06f;
        if (i < 4) {
            memcpy(p[i]->color, c, sizeof(c));
            p[i]->pattern = PATTERN_CLOUDS;
            p[i]->scale = 0.05f;
        }
    }
}

static void shelf(struct maker *m, float x, float z, float w, float turn, int boards, int books)
{
    float rx, rz, gap = 1.7f / (float)boards;

    for (int i = 0; i < 2; i++) {
        turned(x, z, turn, (i ? 1 : -1) * w / 2, 0, &rx, &rz);
        wood(box(m, rx, FLOOR, rz, 0.03f, 1.75f, 0.3f, turn));
    }
    for (int i = 0; i <= boards; i++)
        wood(box(m, x, FLOOR - gap * (float)i, z, w, 0.03f, 0.3f, turn));
    for (int i = 0; i < books; i++) {
        float bw = draw(m, 0.12f, 0.3f);

        turned(x, z, turn, draw(m, -0.5f, 0.5f) * (w - bw - 0.1f), 0.02f, &rx, &rz);
        struct scene_prim *p = box(m, rx, FLOOR - gap * (float)(i % boards) - 0.03f, rz, bw,
                                   draw(m, 0.15f, gap - 0.09f), 0.2f, turn);
        p->pattern = PATTERN_CHECKER;
        p->scale = 0.035f;
    }
}

static void lamp(struct maker *m, float x, float z)
{
    struct scene_prim *p = add(m, PRIM_CYLINDER, XYZ(x, FLOOR - 0.75f, z), XYZ(0.02f, 0.75f, 0), 0);

    color_set(p->color[0], .2f, .2f, .22f);
    add(m, PRIM_CYLINDER, XYZ(x, FLOOR - 0.015f, z), XYZ(0.16f, 0.015f, 0), 0);
    p = add(m, PRIM_CAPSULE, XYZ(x, FLOOR - 1.55f, z), XYZ(0.16f, 0.08f, 0), 0);
    color_set(p->color[0], .98f, .93f, .75f);
}

static void plant(struct maker *m, float x, float z)
{
    struct scene_prim *p = add(m, PRIM_CYLINDER, XYZ(x, FLOOR - 0.15f, z), XYZ(0.15f, 0.15f, 0), 0);

    color_set(p->color[0], .70f, .38f, .25f);
    for (int i = 0; i < 4; i++) {
        p = add(m, PRIM_SPHERE,
                XYZ(x + draw(m, -.14f, .14f), FLOOR - draw(m, .4f, .85f), z + draw(m, -.14f, .14f)),
                XYZ(draw(m, .1f, .19f), 0, 0), 0);
        color_set(p->color[0], .25f, .5f, .22f);
        color_set(p->color[1], .5f, .7f, .3f);
        p->pattern = PATTERN_CLOUDS;
        p->scale = 0.04f;
    }
}

static void picture(struct maker *m, float x, float y, float z, float w, float h, bool along_x)
{
    struct scene_prim *p = box(m, x, y + h / 2, z, along_x ? w : 0.03f, h, along_x ? 0.03f : w, 0);

    p->pattern = PATTERN_CLOUDS;
    p->scale = 0.15f;
    color_draw(m, p->color);
    color_set(p->color[1], .95f, .9f, .8f);
}

/* a handful of things on a surface at height y around (x, z) */
static void things(struct maker *m, float x, float y, float z, float spread, int n)
{
    for (int i = 0; i < n; i++) {
        float a = 6.2832f * ((float)i + draw(m, 0, 0.4f)) / (float)n, r = spread * draw(m, 0.55f, 1),
              s = draw(m, 0.05f, 0.11f);
        float px = x + r * cosf(a), pz = z + r * sinf(a);
        int kind = (i + (int)draw(m, 0, 4.99f)) % 5;
        struct scene_prim *p;

        if (kind == 0)
            p = add(m, PRIM_SPHERE, XYZ(px, y - s, pz), XYZ(s, 0, 0), 0);
        else if (kind == 1)
            p = box(m, px, y, pz, 2 * s, draw(m, 1, 3) * s, 1.5f * s, draw(m, 0, 3));
        else if (kind == 2)
            p = add(m, PRIM_CYLINDER, XYZ(px, y - 1.3f * s, pz), XYZ(0.7f * s, 1.3f * s, 0), 0);
        else if (kind == 3)
            p = add(m, PRIM_TORUS, XYZ(px, y - 0.35f * s, pz), XYZ(s, 0.35f * s, 0), 0);
        else
            p = add(m, PRIM_CAPSULE, XYZ(px, y - 1.6f * s, pz), XYZ(0.6f * s, s, 0), 0);
        p->pattern = (int)draw(m, 0, 4.99f);
        p->scale = draw(m, 0.03f, 0.08f);
        p->turn[0] = cosf(a);
        p->turn[1] = sinf(a);
    }
}

static void make_room(struct maker *m)
{
    float x = draw(m, 2.2f, 2.6f), z = draw(m, 1.8f, 2.1f);
    struct scene_prim *rug;

    room(m, x, z, PATTERN_STRIPES);
    sofa(m, draw(m, -.3f, .3f), z - 0.5f, draw(m, 1.5f, 1.9f), 0);
    table(m, draw(m, -.2f, .2f), 0.55f, 0.9f, 0.5f, 0.42f, draw(m, -.1f, .1f));
    things(m, 0, FLOOR - 0.42f, 0.55f, 0.14f, 3);
    rug = box(m, 0, FLOOR, 0.3f, 2.2f, 0.02f, 1.5f, 0);
    rug->pattern = PATTERN_CHECKER;
    rug->scale = 0.25f;
    shelf(m, draw(m, -.4f, .4f), -z + 0.17f, draw(m, 1.1f, 1.5f), 0, 4, 9);
    lamp(m, x - 0.4f, z - 0.4f);
    plant(m, -x + 0.35f, -z + 0.4f);
    wood(box(m, x - 0.25f, FLOOR, -0.2f, 0.45f, 0.75f, 1.1f, 0));
    things(m, x - 0.25f, FLOOR - 0.75f, -0.2f, 0.13f, 3);
    picture(m, 0, -0.35f, z - 0.02f, 0.9f, 0.6f, true);
    picture(m, -x + 0.02f, -0.3f, 0.3f, 1.1f, 0.7f, false);
}

static void desk(struct maker *m, float x, float z, float turn)
{
    float rx, rz;
    struct scene_prim *p;

    table(m, x, z, 1.4f, 0.7f, 0.72f, turn);
    turned(x, z, turn, 0, 0.2f, &rx, &rz);
    p = box(m, rx, FLOOR - 0.84f, rz, 0.55f, 0.34f, 0.04f, turn);
    color_set(p->color[0], .12f, .13f, .15f);
    color_set(p->color[1], .25f, .45f, .65f);
    p->pattern = PATTERN_CLOUDS;
    p = box(m, rx, FLOOR - 0.72f, rz, 0.2f, 0.12f, 0.12f, turn);
    color_set(p->color[0], .15f, .15f, .17f);
    turned(x, z, turn, 0, -0.12f, &rx, &rz);
    p = box(m, rx, FLOOR - 0.72f, rz, 0.42f, 0.025f, 0.14f, turn);
    p->pattern = PATTERN_CHECKER;
    p->scale = 0.02f;
    turned(x, z, turn, 0, -0.75f, &rx, &rz);
    p = box(m, rx, FLOOR - 0.45f, rz, 0.46f, 0.07f, 0.44f, turn + draw(m, -.5f, .5f));
    p->rounding = 0.03f;
    add(m, PRIM_CYLINDER, XYZ(rx, FLOOR - 0.23f, rz), XYZ(0.03f, 0.22f, 0), 0);
    add(m, PRIM_CYLINDER, XYZ(rx, FLOOR - 0.02f, rz), XYZ(0.24f, 0.02f, 0), 0);
    turned(x, z, turn, draw(m, 0.4f, 0.55f), draw(m, -0.1f, 0.1f), &rx, &rz);
    add(m, PRIM_CYLINDER, XYZ(rx, FLOOR - 0.77f, rz), XYZ(0.04f, 0.05f, 0), 0);
}

static void make_office(struct maker *m)
{
    float x = draw(m, 2.3f, 2.6f), z = draw(m, 1.9f, 2.2f);

    room(m, x, z, PATTERN_CHECKER);
    desk(m, -x / 2, z - 0.45f, 0);
    desk(m, x / 2, z - 0.45f, 0);
    for (int i = 0; i < 3; i++) {
        struct scene_prim *p =
            box(m, -x + 0.26f, FLOOR, -z + 0.4f + 0.62f * (float)i, 0.5f, draw(m, 0.7f, 1.35f), 0.58f, 0);

        p->pattern = PATTERN_STRIPES;
        p->scale = 0.3f;
    }
    shelf(m, x / 3, -z + 0.17f, draw(m, 1.2f, 1.6f), 0, 4, 8);
    plant(m, x - 0.35f, -z + 0.5f);
    add(m, PRIM_CYLINDER, XYZ(x - 0.3f, FLOOR - 0.17f, 0.4f), XYZ(0.14f, 0.17f, 0), 0);
    picture(m, 0, -0.3f, z - 0.02f, 1.4f, 0.8f, true);
}

static void make_objects(struct maker *m)
{
    struct scene_prim *p;

    room(m, draw(m, 2.1f, 2.3f), draw(m, 2.1f, 2.3f), PATTERN_STRIPES);
    p = add(m, PRIM_CYLINDER, XYZ(0, FLOOR - 0.7f, 0), XYZ(0.65f, 0.025f, 0), 0);
    wood(p);
    wood(add(m, PRIM_CYLINDER, XYZ(0, FLOOR - 0.35f, 0), XYZ(0.07f, 0.35f, 0), 0));
    add(m, PRIM_CYLINDER, XYZ(0, FLOOR - 0.02f, 0), XYZ(0.35f, 0.02f, 0), 0);
    things(m, 0, FLOOR - 0.725f, 0, 0.5f, 8);
    things(m, 0, FLOOR - 0.725f, 0, 0.24f, 4);
    p = add(m, PRIM_SPHERE, XYZ(0, FLOOR - 0.725f - 0.13f, 0), XYZ(0.13f, 0, 0), 0);
    p->pattern = PATTERN_CHECKER;
    p->scale = 0.06f;
    for (int i = 0; i < 4; i++) {
        float a = 0.785f + 1.5708f * (float)i;

        p = box(m, 1.75f * cosf(a), FLOOR, 1.75f * sinf(a), 0.4f, draw(m, 0.4f, 1.1f), 0.4f, a);
        p->pattern = PATTERN_BRICKS;
        p->scale = 0.2f;
    }
}

static void make_columns(struct maker *m)
{
    float x = draw(m, 2.4f, 2.6f), z = draw(m, 2.0f, 2.3f), r = draw(m, 0.13f, 0.2f);
    struct scene_prim *p;

    room(m, x, z, PATTERN_CHECKER);
    for (int i = 0; i < 8; i++) {
        float px = (float)(i % 4 - 1.5f) * x * 0.5f, pz = (i < 4 ? -1 : 1) * z * 0.72f;

        p = add(m, PRIM_CYLINDER, XYZ(px, (FLOOR + CEILING) / 2, pz), XYZ(r, (FLOOR - CEILING) / 2, 0), 0);
        color_set(p->color[0], .87f, .84f, .78f);
        color_set(p->color[1], .62f, .58f, .52f);
        p->pattern = PATTERN_CLOUDS;
        p->scale = 0.25f;
        p = box(m, px, FLOOR, pz, 2.8f * r, 0.18f, 2.8f * r, 0);
        color_set(p->color[0], .70f, .67f, .6f);
        p = add(m, PRIM_TORUS, XYZ(px, FLOOR - 0.2f, pz), XYZ(r, 0.05f, 0), 0);
        color_set(p->color[0], .75f, .72f, .65f);
        p = add(m, PRIM_TORUS, XYZ(px, CEILING + 0.12f, pz), XYZ(r, 0.06f, 0), 0);
        color_set(p->color[0], .75f, .72f, .65f);
    }
    for (int i = 0; i < 3; i++) {
        float px = (float)(i - 1) * x * 0.55f;

        p = box(m, px, FLOOR, z - 0.35f, 0.36f, 0.8f, 0.36f, draw(m, 0, 0.8f));
        p->pattern = PATTERN_BRICKS;
        p->scale = 0.18f;
        things(m, px, FLOOR - 0.8f, z - 0.35f, 0.02f, 1);
        things(m, px, FLOOR, -z + 0.4f, 0.2f, 2);
    }
}

void scene_make(int which, uint32_t seed, struct scene *ret)
{
    static void (*const make[])(struct maker *) = { make_room, make_office, make_objects, make_columns };
    struct maker m = { .s = ret };

    memset(ret, 0, sizeof(*ret));
    ret->seed = seed * 4u + (uint32_t)which;
    make[which](&m);
    for (int a = 0; a < 3; a++) {
        ret->low[a] = ret->prim[0].at[a] - ret->prim[0].size[a];
        ret->high[a] = ret->prim[0].at[a] + ret->prim[0].size[a];
    }
    ret->lamp[0] = draw(&m, -0.5f, 0.5f);
    ret->lamp[1] = CEILING + 0.25f;
    ret->lamp[2] = draw(&m, -0.5f, 0.5f);
}

static double smooth(double t)
{
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3 - 2 * t);
}

/* forward and eye to a pose: x right, y down, z forward */
static void look(const double eye[3], const double f[3], double pose[16])
{
    double n = sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2]), z[3] = { f[0] / n, f[1] / n, f[2] / n };
    double h = sqrt(z[0] * z[0] + z[2] * z[2]), x[3] = { z[2] / h, 0, -z[0] / h };
    double y[3] = { z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0] };

    for (int a = 0; a < 3; a++) {
        pose[4 * a] = x[a];
        pose[4 * a + 1] = y[a];
        pose[4 * a + 2] = z[a];
        pose[4 * a + 3] = eye[a];
        pose[12 + a] = 0;
    }
    pose[15] = 1;
}

/* Two turns: inside a room looking outwards, first down, then level; around the objects, first from above. */
void scene_pose(const struct scene *s, int which, uint64_t i, uint64_t n, double pose[16])
{
    double u = (double)i / (double)n, a = 4 * M_PI * u + 0.001 * (s->seed % 977), eye[3], f[3];

    if (which == SCENE_OBJECTS) {
        double r = 1.35 + 0.25 * smooth(4 * u - 1.5), height = 0.95 - 0.6 * smooth(4 * u - 1.5);

        eye[0] = r * cos(a);
        eye[1] = FLOOR - 0.7 - height;
        eye[2] = r * sin(a);
        f[0] = -eye[0];
        f[1] = FLOOR - 0.78 - eye[1];
        f[2] = -eye[2];
    } else {
        double down = 0.62 - 0.56 * smooth(8 * u - 3.5), r = 0.85 - 0.2 * smooth(8 * u - 3.5);

        eye[0] = -r * cos(a);
        eye[1] = -0.25 + 0.1 * sin(3 * a);
        eye[2] = -r * 0.6 * sin(a);
        f[0] = cos(a) * cos(down);
        f[1] = sin(down);
        f[2] = sin(a) * cos(down);
    }
    look(eye, f, pose);
}

int scene_cull(const struct scene *s, struct vec3 eye, struct vec3 axis, float cosine, float sine,
               uint16_t *list)
{
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        const struct scene_prim *p = &s->prim[i];
        struct vec3 d = v3_sub(v3(p->at[0], p->at[1], p->at[2]), eye);
        float along = v3_dot(d, axis), d2 = v3_dot(d, d), across = sqrtf(fmaxf(d2 - along * along, 0));

        /* distance of the centre to the cone's side, negative inside; behind the apex: to the apex */
        if (p->reach <= 0 || d2 <= p->reach * p->reach ||
            across * cosine - along * sine <= p->reach * 1.001f) {
            if (p->reach <= 0 || along > -p->reach)
                list[n++] = (uint16_t)i;
        }
    }
    return n;
}
