/* HIP: clang's offload bundles, plain and compressed. Layout: clang-offload-bundler's documentation, llvm OffloadBundle. */
#include "config.h"

#include <stdlib.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#include "elf/images_priv.h"

#define MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define MAGIC_SIZE 24
#define PACKED_MAGIC "CCOB"
#define HEAD_MAX 65536 /* of an unpacked bundle: its table stands at its start */
#define BUNDLES_MAX 100000

bool target_word(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:+-");

    return n && n < 128 && s[n] == '\0';
}

/* "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" -> "gfx90a:xnack-"; the host's entry has no code. */
static void add_target(struct scan *s, const char *id)
{
    const char *gfx = strstr(id, "gfx");

    if (gfx && target_word(gfx) && s->out->hip.n < TARGETS_MAX && !strv_has(&s->out->hip, gfx))
        strv_add(&s->out->hip, gfx);
}

/* The table of a bundle at the start of n bytes. Gives its whole size as far as its entries tell; 0: no bundle. */
static uint64_t table(struct scan *s, const uint8_t *p, size_t n)
{
    uint64_t count, whole = 0;
    size_t at = MAGIC_SIZE + 8;

    if (n < at || memcmp(p, MAGIC, MAGIC_SIZE))
        return 0;
    count = get64(p + MAGIC_SIZE);
    for (uint64_t i = 0; i < count && i < TARGETS_MAX && n - at >= 24; i++) {
        uint64_t off = get64(p + at), size = get64(p + at + 8), len = get64(p + at + 16);
        char *id;

        at += 24;
        if (len > n - at || len > 256)
            break;
        id = xstrndup((const char *)p + at, (size_t)len);
        add_target(s, id);
        free(id);
        at += (size_t)len;
        if (off <= UINT64_MAX - size && off + size > whole)
            whole = off + size;
    }
    return whole > at ? whole : at;
}

static size_t unpack_zlib(const uint8_t *p, size_t n, uint8_t *out, size_t room)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)room };
    size_t got;

    if (inflateInit(&z) != Z_OK)
        return 0;
    inflate(&z, Z_SYNC_FLUSH);
    got = room - z.avail_out;
    inflateEnd(&z);
    return got;
}

#ifdef HAVE_ZSTD
static size_t unpack_zstd(const uint8_t *p, size_t n, uint8_t *out, size_t room)
{
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer in = { p, n, 0 };
    ZSTD_outBuffer to = { out, room, 0 };

    while (z && in.pos < in.size && to.pos < to.size) {
        size_t before = in.pos + to.pos;

        if (ZSTD_isError(ZSTD_decompressStream(z, &to, &in)) || in.pos + to.pos == before)
            break;
    }
    ZSTD_freeDCtx(z);
    return to.pos;
}
#else
static size_t unpack_zstd(const uint8_t *p, size_t n, uint8_t *out, size_t room)
{
    (void)p, (void)n, (void)out, (void)room;
    return 0;
}
#endif

/* CCOB: u16 version 1 to 3, u16 method (0 zlib, 1 zstd), from version 2 the whole size, unpacked size, u64 hash. The sizes have
 * 4 bytes, 8 in version 3. Gives its end; 0: none. */
static uint64_t packed(struct scan *s, uint64_t off, uint64_t end)
{
    const uint8_t *p = end - off >= 32 ? reader_at(s->r, off, 32) : NULL;
    size_t wide, head, n, got;
    uint8_t *in, *out;
    unsigned version, method;
    uint64_t whole;

    if (!p || memcmp(p, PACKED_MAGIC, 4))
        return 0;
    version = get16(p + 4);
    method = get16(p + 6);
    if (version < 1 || version > 3 || method > 1)
        return 0;
    wide = version == 3 ? 8 : 4;
    head = 8 + (version > 1 ? wide : 0) + wide + 8;
    whole = version == 1 ? end - off : version == 2 ? get32(p + 8) : get64(p + 8);
    if (whole < head || whole > end - off)
        whole = end - off;
    n = whole - head < ((uint64_t)1 << 20) ? (size_t)(whole - head) : (size_t)1 << 20;
    in = xmalloc(n + 1);
    out = xcalloc(1, HEAD_MAX);
    for (got = 0; got < n && (p = reader_at(s->r, off + head + got, n - got < 4096 ? n - got : 4096)); got += n - got < 4096 ? n - got : 4096)
        memcpy(in + got, p, n - got < 4096 ? n - got : 4096);
    n = got < n ? got : n;
    got = method == 0 ? unpack_zlib(in, n, out, HEAD_MAX) : unpack_zstd(in, n, out, HEAD_MAX);
    if (!table(s, out, got))
        s->out->hip_unread++;
    free(in);
    free(out);
    return off + whole;
}

static uint64_t plain(struct scan *s, uint64_t off, uint64_t end)
{
    size_t n = end - off < 4096 ? (size_t)(end - off) : 4096;
    const uint8_t *p = n >= MAGIC_SIZE + 8 ? reader_at(s->r, off, n) : NULL;
    uint64_t whole = p ? table(s, p, n) : 0;

    return whole && whole < end - off ? off + whole : whole ? end : 0;
}

bool is_bundle(struct reader *r, uint64_t off)
{
    const uint8_t *p = reader_at(r, off, MAGIC_SIZE);

    return p && (!memcmp(p, MAGIC, MAGIC_SIZE) || !memcmp(p, PACKED_MAGIC, 4));
}

/* Bundles stand at multiples of 4096 of a section's address; what lies between is zero. */
void scan_bundles(struct scan *s, uint64_t off, uint64_t size)
{
    uint64_t end = off > s->r->size ? 0 : s->r->size - off < size ? s->r->size : off + size, begin = off;

    s->r->window = READER_MAX;
    for (size_t i = 0; off < end && i < BUNDLES_MAX; i++) {
        uint64_t next = plain(s, off, end);

        next = next ? next : packed(s, off, end);
        s->out->bundles += next != 0;
        off = next > off ? next : off + 8;
        off = begin + ((off - begin + 7) & ~(uint64_t)7);
        if (!next) /* on to the next page where one may begin */
            off = begin + ((off - begin + 4095) & ~(uint64_t)4095);
    }
}
