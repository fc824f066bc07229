/* Kernels that take points. */
#include "config.h"
#include "agree.h"

#include <stdlib.h>

static void farthest(struct tally *t)
{
    static const struct {
        uint64_t n, k;
        int ties, first;
    } rows[] = { { 1, 1, 0, 0 }, { 2, 5, 0, 0 }, { 12, 12, 1, 0 }, { 40, 8, 1, 1 }, { 1500, 4, 0, 1 }, { 700, 700, 1, 0 }, { 5000, 400, 0, 1 },
                 { 5000, 6000, 1, 0 }, { 140000, 300, 1, 0 }, { 250000, 4096, 0, 0 }, { 300000, 500, 0, 0 }, { 1000000, 200, 0, 0 }, { 1200000, 100, 1, 0 } };
    struct recon_value *p = agree_params(FPS_NAME);

    for (size_t i = 0; i < (agree_small ? 5 : COUNT(rows)); i++) {
        struct recon_points c = agree_cloud(rows[i].n, 5 + (uint32_t)i, rows[i].ties);
        char name[60];

        p[FPS_COUNT].i = (int64_t)rows[i].k;
        p[FPS_FIRST].i = rows[i].first;
        p[FPS_INDEX].i = (int64_t)rows[i].n / 2;
        snprintf(name, sizeof(name), "%llu of %llu", (unsigned long long)rows[i].k, (unsigned long long)rows[i].n);
        agree_one(t, FPS_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        agree_free_points(&c);
    }
    p[FPS_INDEX].i = 70;
    p[FPS_FIRST].i = 0;
    for (uint64_t n = 0; n < 2; n++) {
        struct recon_points c = agree_cloud(n, 1, false);

        agree_one(t, FPS_NAME, "refused", (const void *[]){ &c, NULL }, p, 0);
        agree_free_points(&c);
    }
    free(p);
}

static void voxels(struct tally *t)
{
    static const double shape[3] = { 21, 30, 17 }, origin[3] = { -0.5, -0.25, -1 };
    struct recon_value *p = agree_params(VOXELIZE_NAME); /* ways: meanings, then with an origin, a voxel, a shape */
    uint32_t sizes[] = { 1, 50, agree_small ? 90 : 3000, agree_small ? 90 : 200000 };

    for (size_t i = 0; i < (agree_small ? 48 : 192); i++) {
        int ties = (int)i & 1, form = (int)i >> 1 & 1, way = (int)(i / 4 % 6);
        struct recon_points c = agree_cloud(sizes[(agree_small ? i / 12 : i / 24) % 4], (uint32_t)i, ties);
        char name[80];

        p[VOXELIZE_MEANING].i = way % 3;
        p[VOXELIZE_FORM].i = form;
        p[VOXELIZE_RESOLUTION].i = agree_small ? 7 : i & 32 ? 33 : 16;
        p[VOXELIZE_VOXEL].f = way % 3 == VOXELIZE_GRID ? (ties ? 2.5 : agree_small ? 0.3 : 0.07) : way == 4 ? 0.11 : 0;
        p[VOXELIZE_SHAPE] = (struct recon_value){ .v = shape, .n = way == 5 ? 3 : 0 };
        p[VOXELIZE_ORIGIN] = (struct recon_value){ .v = origin, .n = way == 3 || way == 5 ? 3 : 0 };
        snprintf(name, sizeof(name), "%llu points, way %d, form %d, ties %d", (unsigned long long)c.n, way, form, ties);
        agree_one(t, VOXELIZE_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        p[VOXELIZE_FORM].i = VOXELIZE_BLOCKS;
        snprintf(name, sizeof(name), "%llu points, way %d, blocks, ties %d", (unsigned long long)c.n, way, ties);
        if (form == VOXELIZE_DENSE)
            agree_one(t, VOXELIZE_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        agree_free_points(&c);
    }
    free(p);
}

enum { MANY = 4300001, FEWER = 1050001 }; /* points that are dealt out by parts of the grid, by a device and by its fake */

/* More cells than are counted in floats at once; of the points, some in no order, a crowd is in one cell, which may be more than
 * 16 bits count. */
static void many_cells(struct tally *t)
{
    static const struct {
        uint64_t n, crowd;
        int way;
    } rows[] = { { 3001, 66000, VOXELIZE_KAOLIN }, { MANY, 2000, VOXELIZE_KAOLIN_01 }, { MANY, 66000, VOXELIZE_GRID }, { 3001, 66000, VOXELIZE_GRID },
                 { MANY, 300, VOXELIZE_KAOLIN }, { 5000000, 10, VOXELIZE_GRID } };
    struct recon_value *p = agree_params(VOXELIZE_NAME);

    p[VOXELIZE_FORM].i = VOXELIZE_DENSE;
    p[VOXELIZE_RESOLUTION].i = 163;
    for (size_t i = 0; i < (agree_small ? 3 : COUNT(rows)); i++) {
        uint64_t n = rows[i].n == MANY && agree_small ? FEWER : rows[i].n;
        struct recon_points c;
        char name[80];

        c = agree_cloud(n + rows[i].crowd, 8, false);
        for (uint64_t k = 0; k < rows[i].crowd; k++)
            memcpy(c.xyz + 3 * k, (float[]){ 0.1f, -0.2f, 0.3f }, 12);
        p[VOXELIZE_MEANING].i = rows[i].way;
        p[VOXELIZE_VOXEL].f = rows[i].way == VOXELIZE_GRID ? 0.012 : 0;
        snprintf(name, sizeof(name), "many cells, %llu points, way %d", (unsigned long long)c.n, rows[i].way);
        agree_one(t, VOXELIZE_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        agree_free_points(&c);
    }
    free(p);
}

static void planes(struct tally *t)
{
    static const struct {
        uint64_t n;
        int k, orient, ties;
    } rows[] = { { 2, 5, 0, 0 }, { 3, 3, 0, 0 }, { 20, 30, 3, 1 }, { 33, 8, 1, 0 }, { 300, 6, 2, 1 }, { 1200, 30, 0, 1 }, { 700, 33, 3, 0 },
                 { 2000, 256, 3, 0 }, { 100000, 30, 0, 0 }, { 100000, 12, 3, 1 }, { 30000, 100, 1, 0 } };
    struct recon_value *p = agree_params(POINTS_NORMALS_NAME);

    for (size_t i = 0; i < (agree_small ? 5 : COUNT(rows)); i++) {
        struct recon_points c = agree_cloud(rows[i].n, 5 + (uint32_t)i, rows[i].ties);
        char name[60];

        p[POINTS_NORMALS_K].i = rows[i].k;
        p[POINTS_NORMALS_ORIENT].i = rows[i].orient;
        snprintf(name, sizeof(name), "%d of %llu", rows[i].k, (unsigned long long)rows[i].n);
        agree_one(t, POINTS_NORMALS_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        agree_free_points(&c);
    }
    free(p);
}

int agree_points(void)
{
    struct tally fps = { 0 }, cells = { 0 }, flats = { 0 };

    voxels(&cells);
    if (!agree_plain) /* whose cells each ask each point */
        many_cells(&cells);
    planes(&flats);
    farthest(&fps);
    return agree_told(VOXELIZE_NAME, &cells) + agree_told(POINTS_NORMALS_NAME, &flats) + agree_told(FPS_NAME, &fps);
}
