/* Libraries of materials over any bytes: refused in one line, or packed, unpacked and packed alike, and written as a library that is
 * read again, with as many materials and statements. */
#include "config.h"
#include "data/mtl.h"
#include "data/geom.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static size_t statements(const struct extra *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->materials.n; i++)
        n += e->materials.v[i].lines.n;
    return n;
}

static void pack_and_back(const struct extra *e)
{
    struct recon_mesh m = { 0 }, again = { 0 };
    struct extra back;

    must(extra_pack(e, &data_malloc, &m, NULL) == 0);
    must(extra_unpack(&m, &back, NULL) == 0);
    must(extra_pack(&back, &data_malloc, &again, NULL) == 0 && again.extra_bytes == m.extra_bytes);
    must(!m.extra || memcmp(m.extra, again.extra, m.extra_bytes) == 0);
    extra_free(&back);
    free(m.extra);
    free(again.extra);
}

static void write_and_read(const struct extra *e)
{
    struct strv names = { 0 }, images = { 0 };
    struct mesh_written w = { 0 };
    struct extra back = { 0 };
    struct str t = { 0 };
    uint64_t again;
    char path[80];

    snprintf(path, sizeof(path), "%s/recon-fuzz-%d.obj", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
    mtl_names(e, &names);
    must(mtl_write_images(path, e, &images, &w, NULL) == 0 && images.n == e->images.n && w.files.n == 0);
    must(mtl_write(path, e, &names, &images, &w, NULL) == 0 && w.files.n == 1);
    must(file_read(w.files.v[0], 1 << 26, &t, NULL) == 0);
    must(mtl_parse("b.mtl", "", t.s, t.len, &back, &again, NULL) == 0 && again == 0);
    must(back.materials.n == e->materials.n && statements(&back) == statements(e) && back.images.n == e->images.n);
    unlink(w.files.v[0]);
    mesh_written_release(&w);
    strv_release(&names);
    strv_release(&images);
    str_release(&t);
    extra_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct extra e = { 0 };
    struct fault fault = { 0 };
    uint64_t again = 0;
    double v[3];

    if (mtl_parse("a.mtl", "", (const char *)data, size, &e, &again, &fault)) {
        must(fault.err.code == CODE_DATA && *fault.err.text && !strchr(fault.err.text, '\n'));
    } else {
        for (size_t i = 0; i < e.materials.n; i++) {
            mtl_values(&e.materials.v[i], "Kd", v, 3);
            mtl_image(&e.materials.v[i], "map_Kd");
        }
        pack_and_back(&e);
        write_and_read(&e);
    }
    extra_free(&e);
    return 0;
}
