#include "config.h"
#include "data/data_priv.h"

static void write_head(FILE *f, const struct recon_mesh *m)
{
    fprintf(f, "ply\nformat binary_little_endian 1.0\ncomment recon\nelement vertex %llu\n"
               "property float x\nproperty float y\nproperty float z\n",
            (unsigned long long)m->vertices);
    if (m->normals)
        fputs("property float nx\nproperty float ny\nproperty float nz\n", f);
    if (m->rgb)
        fputs("property uchar red\nproperty uchar green\nproperty uchar blue\n", f);
    fprintf(f, "element face %llu\nproperty list uchar int vertex_indices\nend_header\n",
            (unsigned long long)m->faces);
}

/* the machine is little-endian wherever CUDA and Slurm run; refused elsewhere at compile time */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary files are written in the machine's order");

int ply_write(const char *path, const struct recon_mesh *m, struct err *err)
{
    struct file_out o;
    char buffer[65536];
    size_t n = 0;

    if (m->vertices > INT32_MAX)
        return err_set(err, CODE_DATA, "mesh of %llu vertices does not fit PLY's int indices, at most %d",
                       (unsigned long long)m->vertices, INT32_MAX);
    if (file_open_out(&o, path, 0666, err))
        return -1;
    write_head(o.f, m);
    for (uint64_t i = 0; i < m->vertices; i++) {
        memcpy(buffer + n, m->xyz + 3 * i, 12);
        n += 12;
        if (m->normals) {
            memcpy(buffer + n, m->normals + 3 * i, 12);
            n += 12;
        }
        if (m->rgb) {
            memcpy(buffer + n, m->rgb + 3 * i, 3);
            n += 3;
        }
        if (n > sizeof(buffer) - 64 || i + 1 == m->vertices) {
            fwrite(buffer, 1, n, o.f);
            n = 0;
        }
    }
    for (uint64_t i = 0; i < m->faces; i++) {
        buffer[n++] = 3;
        memcpy(buffer + n, m->index + 3 * i, 12);
        n += 12;
        if (n > sizeof(buffer) - 64 || i + 1 == m->faces) {
            fwrite(buffer, 1, n, o.f);
            n = 0;
        }
    }
    return file_commit(&o, err); /* a failed write sticks to the stream and shows here */
}
