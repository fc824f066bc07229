/* Points as text, one a line: x y z; .xyzn and .npts: and a normal; .xyzrgb: and a colour, whole to 255 or fractions to 1. */
#include "config.h"
#include "data/geom.h"

#include <math.h>


/* how many lines hold something */
static uint64_t count_lines(const struct load *t)
{
    struct text at = { t->s, t->s + t->n, 1 };
    uint64_t n = 0;

    for (; text_next(&at); n++)
        at.p = text_line_end(&at);
    return n;
}

static uint8_t byte_of(double v, bool whole)
{
    double k = whole ? v : v * 255;

    return (uint8_t)(k > 0 ? (k < 255 ? k + 0.5 : 255) : 0);
}

static int read_line(struct text *t, int wanted, double v[6], bool *whole)
{
    const char *end = text_line_end(t), *from;
    int n = 0;

    for (from = t->p; n < wanted; n++) {
        t->p = skip_blank(t->p, end);
        while (t->p < end && *t->p == ',')
            t->p = skip_blank(t->p + 1, end);
        from = n == 3 ? t->p : from;
        if (!number_read(&t->p, end, &v[n]))
            break;
    }
    *whole = !memchr(from, '.', (size_t)(t->p - from));
    t->p = end;
    return n;
}

int xyz_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret, struct fault *fault)
{
    bool normals = str_ends(path, ".xyzn") || str_ends(path, ".npts"), rgb = str_ends(path, ".xyzrgb"), whole;
    struct text t = { text->s, text->s + text->n, 1 };
    int wanted = normals || rgb ? 6 : 3, n;
    struct recon_mesh m;
    double v[6];

    if (mesh_arrays(&m, count_lines(text), normals, rgb, alloc, fault))
        return -1;
    for (uint64_t i = 0; text_next(&t); i++) {
        if ((n = read_line(&t, wanted, v, &whole)) < wanted) {
            mesh_drop(&m, alloc);
            return fault_set(fault, CODE_DATA, t.p >= t.end ? "file-truncated" : NULL, "'%s' line %llu has %d numbers, %d are wanted", path,
                             (unsigned long long)t.line, n, wanted);
        }
        for (uint64_t k = 0; k < 3; k++) {
            m.xyz[3 * i + k] = place(text, (int)k, v[k]);
            if (normals)
                m.normals[3 * i + k] = (float)v[3 + k];
            if (rgb)
                m.rgb[3 * i + k] = byte_of(v[3 + k], whole);
        }
    }
    *ret = m;
    return 0;
}
