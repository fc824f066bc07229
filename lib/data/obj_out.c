#include "config.h"
#include "data/geom.h"

/* Nine digits give every float back. Colours stand behind the coordinates, as fractions. */
int obj_write(const char *path, const struct recon_mesh *m, struct err *err)
{
    struct file_out o;

    if (file_open_out(&o, path, 0644, err))
        return -1;
    fputs("# recon\n", o.f);
    for (uint64_t i = 0; i < m->vertices; i++) {
        const float *p = m->xyz + 3 * i;

        fprintf(o.f, "v %.9g %.9g %.9g", (double)p[0], (double)p[1], (double)p[2]);
        if (m->rgb)
            fprintf(o.f, " %.4f %.4f %.4f", m->rgb[3 * i] / 255.0, m->rgb[3 * i + 1] / 255.0, m->rgb[3 * i + 2] / 255.0);
        fputc('\n', o.f);
    }
    for (uint64_t i = 0; m->normals && i < m->vertices; i++) {
        const float *p = m->normals + 3 * i;

        fprintf(o.f, "vn %.9g %.9g %.9g\n", (double)p[0], (double)p[1], (double)p[2]);
    }
    for (uint64_t f = 0; f < m->faces; f++) {
        const uint32_t *v = m->index + 3 * f;
        unsigned long long a = v[0] + 1ull, b = v[1] + 1ull, c = v[2] + 1ull;

        if (m->normals)
            fprintf(o.f, "f %llu//%llu %llu//%llu %llu//%llu\n", a, a, b, b, c, c);
        else
            fprintf(o.f, "f %llu %llu %llu\n", a, b, c);
    }
    return file_commit(&o, err); /* a failed write sticks to the stream and shows here */
}
