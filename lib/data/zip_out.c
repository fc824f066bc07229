/* Zip archives as numpy's savez writes them: every local header has a zip64 field, so that any size fits;
 * sizes and checksum are put in after the data. */
#include "config.h"
#include "data/data_priv.h"

#include <stdlib.h>
#include <zlib.h>

enum { LOCAL = 30, FIELD64 = 20, CRC_AT = 14 };

static void put(unsigned char *p, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static int failed(struct zip_out *z, struct err *err)
{
    return err_sys(err, CODE_IO, "cannot write '%s'", z->file.path);
}

int zip_out_open(struct zip_out *z, const char *path, bool deflate, struct err *err)
{
    *z = (struct zip_out){ .deflate = deflate };
    return file_open_out(&z->file, path, 0666, err);
}

static int write_all(struct zip_out *z, const void *p, size_t n, struct err *err)
{
    return n && fwrite(p, 1, n, z->file.f) != n ? failed(z, err) : 0;
}

static size_t local_header(const struct zip_member *m, unsigned char h[LOCAL + 64 + FIELD64])
{
    size_t n = strlen(m->name);

    memset(h, 0, LOCAL + 64 + FIELD64);
    put(h, 0x04034b50, 4);
    put(h + 4, 45, 2);
    put(h + 8, (uint64_t)m->method, 2);
    put(h + 12, 0x21, 2); /* 1980-01-01, so that equal data gives equal files */
    put(h + CRC_AT, m->crc, 4);
    put(h + 18, 0xffffffff, 4);
    put(h + 22, 0xffffffff, 4);
    put(h + 26, n, 2);
    put(h + 28, FIELD64, 2);
    memcpy(h + LOCAL, m->name, n);
    put(h + LOCAL + n, 1, 2);
    put(h + LOCAL + n + 2, 16, 2);
    put(h + LOCAL + n + 4, m->size, 8);
    put(h + LOCAL + n + 12, m->packed, 8);
    return LOCAL + n + FIELD64;
}

static int store(struct zip_out *z, struct zip_member *m, const struct zip_piece *pieces, size_t n,
                 struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = pieces[i].p;

        for (uint64_t left = pieces[i].n, k; left; left -= k, p += k) {
            k = left < (1u << 24) ? left : 1u << 24;
            m->crc = (uint32_t)crc32(m->crc, p, (uInt)k);
            if (write_all(z, p, (size_t)k, err))
                return -1;
            m->packed += k;
        }
        m->size += pieces[i].n;
    }
    return 0;
}

static int deflate_into(struct zip_out *z, struct zip_member *m, z_stream *s, int flush, struct err *err)
{
    unsigned char out[65536];
    int rc;

    do {
        s->next_out = out;
        s->avail_out = sizeof(out);
        rc = deflate(s, flush);
        if (write_all(z, out, sizeof(out) - s->avail_out, err))
            return -1;
        m->packed += sizeof(out) - s->avail_out;
    } while (s->avail_in || (flush == Z_FINISH && rc == Z_OK));
    return 0;
}

static int pack(struct zip_out *z, struct zip_member *m, const struct zip_piece *pieces, size_t n,
                struct err *err)
{
    z_stream s = { 0 };
    int rc = 0;

    if (deflateInit2(&s, 1, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return err_set(err, CODE_MEMORY, "no memory to pack '%s'", z->file.path);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const unsigned char *p = pieces[i].p;

        for (uint64_t left = pieces[i].n, k; rc == 0 && left; left -= k, p += k) {
            k = left < (1u << 24) ? left : 1u << 24;
            m->crc = (uint32_t)crc32(m->crc, p, (uInt)k);
            s.next_in = (unsigned char *)(uintptr_t)p;
            s.avail_in = (uInt)k;
            rc = deflate_into(z, m, &s, Z_NO_FLUSH, err);
        }
        m->size += pieces[i].n;
    }
    if (rc == 0)
        rc = deflate_into(z, m, &s, Z_FINISH, err);
    deflateEnd(&s);
    return rc;
}

int zip_out_add(struct zip_out *z, const char *name, const struct zip_piece *pieces, size_t n,
                struct err *err)
{
    struct zip_member m = { .method = z->deflate ? 8 : 0, .crc = (uint32_t)crc32(0, NULL, 0) };
    unsigned char head[LOCAL + 64 + FIELD64];
    off_t start = ftello(z->file.f);
    size_t len;

    snprintf(m.name, sizeof(m.name), "%s", name);
    if (start < 0)
        return failed(z, err);
    m.at = (uint64_t)start;
    len = local_header(&m, head);
    if (write_all(z, head, len, err) || (z->deflate ? pack : store)(z, &m, pieces, n, err))
        return -1;
    len = local_header(&m, head);
    if (fseeko(z->file.f, start, SEEK_SET) || write_all(z, head, len, err) || fseeko(z->file.f, 0, SEEK_END))
        return failed(z, err);
    *VEC_ADD(&z->members) = m;
    return 0;
}

static void central_header(struct str *t, const struct zip_member *m)
{
    unsigned char h[46] = { 0 }, field[28] = { 0 };
    size_t n = strlen(m->name);

    put(h, 0x02014b50, 4);
    put(h + 4, 45, 2);
    put(h + 6, 45, 2);
    put(h + 10, (uint64_t)m->method, 2);
    put(h + 14, 0x21, 2);
    put(h + 16, m->crc, 4);
    put(h + 20, 0xffffffff, 4);
    put(h + 24, 0xffffffff, 4);
    put(h + 28, n, 2);
    put(h + 30, sizeof(field), 2);
    put(h + 38, 0644u << 16 | 0100000u << 16, 4);
    put(h + 42, 0xffffffff, 4);
    put(field, 1, 2);
    put(field + 2, 24, 2);
    put(field + 4, m->size, 8);
    put(field + 12, m->packed, 8);
    put(field + 20, m->at, 8);
    str_addn(t, h, sizeof(h));
    str_addn(t, m->name, n);
    str_addn(t, field, sizeof(field));
}

int zip_out_commit(struct zip_out *z, struct err *err)
{
    unsigned char end64[56] = { 0 }, locator[20] = { 0 }, end[22] = { 0 };
    off_t start = ftello(z->file.f);
    struct str dir = { 0 };
    size_t bytes;
    int rc;

    if (start < 0)
        return failed(z, err);
    for (size_t i = 0; i < z->members.n; i++)
        central_header(&dir, &z->members.v[i]);
    bytes = dir.len;
    put(end64, 0x06064b50, 4);
    put(end64 + 4, 44, 8);
    put(end64 + 12, 45, 2);
    put(end64 + 14, 45, 2);
    put(end64 + 24, z->members.n, 8);
    put(end64 + 32, z->members.n, 8);
    put(end64 + 40, bytes, 8);
    put(end64 + 48, (uint64_t)start, 8);
    put(locator, 0x07064b50, 4);
    put(locator + 8, (uint64_t)start + bytes, 8);
    put(locator + 16, 1, 4);
    put(end, 0x06054b50, 4);
    put(end + 8, z->members.n, 2);
    put(end + 10, z->members.n, 2);
    put(end + 12, bytes, 4);
    put(end + 16, (uint64_t)start < 0xffffffffu ? (uint64_t)start : 0xffffffffu, 4);
    str_addn(&dir, end64, sizeof(end64));
    str_addn(&dir, locator, sizeof(locator));
    str_addn(&dir, end, sizeof(end));
    rc = write_all(z, dir.s, dir.len, err);
    str_release(&dir);
    if (rc == 0)
        rc = file_commit(&z->file, err);
    zip_out_abort(z);
    return rc;
}

void zip_out_abort(struct zip_out *z)
{
    file_abort(&z->file);
    free(z->members.v);
    *z = (struct zip_out){ 0 };
}
