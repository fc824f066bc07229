#include "config.h"
#include "data/data_priv.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR64 = 20, MEMBERS_MAX = 4096 };

static uint32_t le(const unsigned char *p, int n)
{
    uint32_t v = 0;

    for (int i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static uint64_t le64(const unsigned char *p)
{
    return (uint64_t)le(p + 4, 4) << 32 | le(p, 4);
}

static int damaged(const char *path, const char *what, struct fault *fault)
{
    return fault_set(fault, CODE_DATA, "file-truncated", "'%s' is no whole zip archive: %s", path, what);
}

/* where the central directory is: offset, bytes, members */
static int find_directory(struct zip *z, uint64_t size, uint64_t ret[3], struct fault *fault)
{
    unsigned char tail[65536 + END], e64[END64];
    size_t n = size < sizeof(tail) ? (size_t)size : sizeof(tail), i;
    const unsigned char *loc;

    if (size < END)
        return damaged(z->path, "too short", fault);
    if (data_pread(z->fd, z->path, tail, n, size - n, fault))
        return -1;
    for (i = n - END + 1; i-- > 0;)
        if (le(tail + i, 4) == 0x06054b50)
            break;
    if (i == (size_t)-1)
        return damaged(z->path, "its directory is missing", fault);
    ret[0] = le(tail + i + 16, 4);
    ret[1] = le(tail + i + 12, 4);
    ret[2] = le(tail + i + 10, 2);
    loc = i >= LOCATOR64 ? tail + i - LOCATOR64 : NULL;
    if (loc && le(loc, 4) == 0x07064b50) {
        uint64_t at = le64(loc + 8);

        if (size < END64 || at > size - END64)
            return damaged(z->path, "its zip64 directory lies beyond the end", fault);
        if (data_pread(z->fd, z->path, e64, sizeof(e64), at, fault))
            return -1;
        if (le(e64, 4) != 0x06064b50)
            return damaged(z->path, "its zip64 directory is damaged", fault);
        ret[0] = le64(e64 + 48);
        ret[1] = le64(e64 + 40);
        ret[2] = le64(e64 + 32);
    }
    if (ret[0] > size || ret[1] > size - ret[0] || ret[2] > MEMBERS_MAX || ret[1] > (16 << 20))
        return damaged(z->path, "its directory lies beyond the end", fault);
    return 0;
}

/* sizes and offset of 0xffffffff stand in the zip64 field, in this order */
static void zip64_field(const unsigned char *extra, size_t n, struct zip_member *m)
{
    uint64_t *want[3] = { &m->size, &m->packed, &m->at };
    size_t i = 0;

    while (i + 4 <= n) {
        size_t len = le(extra + i + 2, 2), j = i + 4;

        if (le(extra + i, 2) == 1)
            for (int k = 0; k < 3; k++)
                if (*want[k] == 0xffffffffu && j + 8 <= i + 4 + len && j + 8 <= n) {
                    *want[k] = le64(extra + j);
                    j += 8;
                }
        i += 4 + len;
    }
}

static int add_member(struct zip *z, const unsigned char *c, const char *name, size_t name_n, size_t extra_n,
                      uint64_t size, struct fault *fault)
{
    struct zip_member m = {.method = (int)le(c + 10, 2),
                           .crc = le(c + 16, 4),
                           .packed = le(c + 20, 4),
                           .size = le(c + 24, 4),
                           .at = le(c + 42, 4)};
    unsigned char local[LOCAL];

    if (name_n >= sizeof(m.name))
        return 0; /* no key of ours is as long */
    memcpy(m.name, name, name_n);
    zip64_field((const unsigned char *)name + name_n, extra_n, &m);
    if (m.at > size || size - m.at < LOCAL)
        return damaged(z->path, "a member lies beyond the end", fault);
    if (data_pread(z->fd, z->path, local, LOCAL, m.at, fault))
        return -1;
    if (le(local, 4) != 0x04034b50)
        return damaged(z->path, "a member's header is damaged", fault);
    m.at += LOCAL + le(local + 26, 2) + le(local + 28, 2);
    if (m.at > size || m.packed > size - m.at)
        return damaged(z->path, "a member is longer than the file", fault);
    if ((le(c + 8, 2) & 1) || (m.method != 0 && m.method != 8))
        return fault_set(fault, CODE_DATA, NULL,
                         "member '%s' of '%s' is encrypted or packed by method %d, 0 and 8 are read", m.name,
                         z->path, m.method);
    if (m.method == 0 ? m.packed != m.size : m.size / 1100 > m.packed)
        return damaged(z->path, "a member says more bytes than it has", fault);
    *VEC_ADD(&z->members) = m;
    return 0;
}

int zip_open(const char *path, struct zip *ret, struct fault *fault)
{
    struct zip z = { .path = xstrdup(path) };
    uint64_t size = 0, dir[3], at = 0;
    unsigned char *d = NULL;
    int rc = -1;

    z.fd = data_open(path, &size, fault);
    if (z.fd < 0 || find_directory(&z, size, dir, fault))
        goto out;
    d = xmalloc((size_t)dir[1] + 1);
    if (data_pread(z.fd, path, d, (size_t)dir[1], dir[0], fault))
        goto out;
    for (uint64_t i = 0; i < dir[2]; i++) {
        const unsigned char *c = d + at;
        size_t name_n, extra_n, whole;

        if (dir[1] - at < CENTRAL || le(c, 4) != 0x02014b50) {
            damaged(path, "its directory is damaged", fault);
            goto out;
        }
        name_n = le(c + 28, 2);
        extra_n = le(c + 30, 2);
        whole = CENTRAL + name_n + extra_n + le(c + 32, 2);
        if (whole > dir[1] - at) {
            damaged(path, "its directory is damaged", fault);
            goto out;
        }
        if (add_member(&z, c, (const char *)c + CENTRAL, name_n, extra_n, size, fault))
            goto out;
        at += whole;
    }
    rc = 0;
out:
    free(d);
    if (rc)
        zip_close(&z);
    else
        *ret = z;
    return rc;
}

void zip_close(struct zip *z)
{
    if (z->fd >= 0)
        close(z->fd);
    free(z->members.v);
    free(z->path);
    *z = (struct zip){ .fd = -1 };
}

const struct zip_member *zip_find(const struct zip *z, const char *name)
{
    for (size_t i = 0; i < z->members.n; i++)
        if (str_eq(z->members.v[i].name, name))
            return &z->members.v[i];
    return NULL;
}

/* ---- one member, unpacked in pieces ---- */

struct zip_stream {
    const struct zip *zip;
    const struct zip_member *m;
    uint64_t taken, given; /* packed bytes read, unpacked bytes given */
    uint32_t crc;
    bool ended;
    z_stream z;
    unsigned char in[65536];
};

struct zip_stream *zip_stream_open(const struct zip *z, const struct zip_member *m)
{
    struct zip_stream *s = xcalloc(1, sizeof(*s));

    s->zip = z;
    s->m = m;
    s->crc = (uint32_t)crc32(0, NULL, 0);
    if (m->method == 8 && inflateInit2(&s->z, -MAX_WBITS) != Z_OK) {
        free(s);
        return NULL;
    }
    return s;
}

void zip_stream_close(struct zip_stream *s)
{
    if (s && s->m->method == 8)
        inflateEnd(&s->z);
    free(s);
}

static int refill(struct zip_stream *s, struct fault *fault)
{
    uint64_t left = s->m->packed - s->taken;
    size_t n = left < sizeof(s->in) ? (size_t)left : sizeof(s->in);

    if (!n)
        return fault_set(fault, CODE_DATA, "file-truncated", "member '%s' of '%s' ends early", s->m->name,
                         s->zip->path);
    if (data_pread(s->zip->fd, s->zip->path, s->in, n, s->m->at + s->taken, fault))
        return -1;
    s->taken += n;
    s->z.next_in = s->in;
    s->z.avail_in = (uInt)n;
    return 0;
}

static int inflate_to(struct zip_stream *s, unsigned char *to, size_t n, struct fault *fault)
{
    s->z.next_out = to;
    s->z.avail_out = (uInt)n;
    while (s->z.avail_out) {
        int rc;

        if (!s->z.avail_in && refill(s, fault))
            return -1;
        rc = inflate(&s->z, Z_NO_FLUSH);
        s->ended = rc == Z_STREAM_END;
        if ((rc != Z_OK && rc != Z_STREAM_END) || (s->ended && s->z.avail_out))
            return fault_set(fault, CODE_DATA, "file-truncated", "member '%s' of '%s' is damaged", s->m->name,
                             s->zip->path);
    }
    return 0;
}

int zip_stream_read(struct zip_stream *s, void *to, size_t n, struct fault *fault)
{
    unsigned char *p = to;

    if (n > s->m->size - s->given)
        return fault_set(fault, CODE_DATA, "file-truncated", "member '%s' of '%s' is shorter than its array",
                         s->m->name, s->zip->path);
    while (n) {
        size_t k = n < (1u << 24) ? n : 1u << 24;

        if (s->m->method == 8 ? inflate_to(s, p, k, fault)
                              : data_pread(s->zip->fd, s->zip->path, p, k, s->m->at + s->given, fault))
            return -1;
        s->crc = (uint32_t)crc32(s->crc, p, (uInt)k);
        s->given += k;
        p += k;
        n -= k;
    }
    return 0;
}

int zip_stream_end(struct zip_stream *s, struct fault *fault)
{
    if (s->given != s->m->size)
        return fault_set(fault, CODE_DATA, NULL, "member '%s' of '%s' is longer than its array", s->m->name,
                         s->zip->path);
    if (s->crc != s->m->crc)
        return fault_set(fault, CODE_DATA, "file-truncated",
                         "member '%s' of '%s' is damaged: checksum %08x, %08x wanted", s->m->name,
                         s->zip->path, s->crc, s->m->crc);
    return 0;
}
