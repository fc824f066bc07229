/* Clang's offload binaries: device images of OpenMP in programs, of CUDA, HIP and SYCL in objects that are not linked yet.
 * Layout: clang-offload-packager's documentation and llvm OffloadBinary.h, versions 1 and 2. */
#include "config.h"

#include <stdlib.h>
#include "elf/images_priv.h"

#define MAGIC "\x10\xFF\x10\xAD"
#define HEADER 32
#define ENTRY 40
#define FLAG_NO_IMAGE 1u
#define STRINGS_MAX 64
#define ENTRIES_MAX 65536
#define BINARIES_MAX 100000

enum { KIND_OBJECT = 1, KIND_BITCODE, KIND_CUBIN, KIND_FATBIN, KIND_PTX, KIND_SPIRV };

struct binary { uint64_t at, size; unsigned version; };

/* LLVM 15 to 19 count producers, later ones have a bit for each. */
static int producer_of(unsigned n)
{
    static const int producers[] = { -1, OFFLOAD_OPENMP, OFFLOAD_CUDA, OFFLOAD_HIP, OFFLOAD_HIP, -1, -1, -1, OFFLOAD_SYCL };

    return n < COUNT(producers) ? producers[n] : -1;
}

static void add(struct scan *s, int producer, enum offload_form form, const char *target)
{
    struct offload_images *l = &s->out->offload;

    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].producer == (enum offload_producer)producer && l->v[i].form == form && str_eq(l->v[i].target, target)) {
            l->v[i].count++;
            return;
        }
    if (l->n < TARGETS_MAX)
        *VEC_ADD(l) = (struct offload_image){ (enum offload_producer)producer, form, 1, xstrdup(target) };
}

/* A text at an offset of the binary; owned, NULL: none, or no word. */
static char *text_at(struct scan *s, const struct binary *b, uint64_t off)
{
    char *t = off < b->size ? reader_string(s->r, b->at + off, b->at + b->size) : NULL;

    if (t && !target_word(t)) {
        free(t);
        t = NULL;
    }
    return t;
}

/* "arch" of the string map, else "triple"; owned, NULL: neither. */
static char *target_of(struct scan *s, const struct binary *b, uint64_t table, uint64_t n)
{
    uint64_t width = b->version == 1 ? 16 : 24;
    char *target = NULL, *triple = NULL;

    for (uint64_t i = 0; i < n && i < STRINGS_MAX && !target; i++) {
        const uint8_t *p = table <= b->size && (b->size - table) / width > i ? reader_at(s->r, b->at + table + i * width, 16) : NULL;
        uint64_t value = p ? get64(p + 8) : 0;
        char *key = p ? text_at(s, b, get64(p)) : NULL;

        if (str_eq(key, "arch")) {
            target = text_at(s, b, value);
        } else if (str_eq(key, "triple")) {
            free(triple);
            triple = text_at(s, b, value);
        }
        free(key);
    }
    if (!target || str_eq(target, "generic")) {
        free(target);
        return triple;
    }
    free(triple);
    return target;
}

static void entry(struct scan *s, const struct binary *b, uint64_t off)
{
    const uint8_t *p = off <= b->size && b->size - off >= ENTRY ? reader_at(s->r, b->at + off, ENTRY) : NULL;
    uint64_t image, size;
    int producer;
    unsigned kind;
    char *target;

    if (!p || get32(p + 4) & FLAG_NO_IMAGE)
        return;
    kind = get16(p);
    producer = producer_of(get16(p + 2));
    image = get64(p + 24);
    size = get64(p + 32);
    if (producer < 0 || image > b->size || b->size - image < size)
        return;
    if (kind == KIND_FATBIN) { /* with headers of its own */
        scan_region(s, b->at + image, size, false);
        return;
    }
    target = target_of(s, b, get64(p + 8), get64(p + 16));
    if (target)
        add(s, producer, kind == KIND_PTX ? OFFLOAD_PTX : kind == KIND_BITCODE || kind == KIND_SPIRV ? OFFLOAD_IR : OFFLOAD_CODE,
            target);
    free(target);
}

/* The binary at off: its end, or 0 if there is none. */
static uint64_t binary(struct scan *s, uint64_t off, uint64_t end)
{
    const uint8_t *p = reader_at(s->r, off, HEADER);
    struct binary b;
    uint64_t entries, n;

    if (!p || memcmp(p, MAGIC, 4))
        return 0;
    b = (struct binary){ .at = off, .size = get64(p + 8), .version = get32(p + 4) };
    entries = get64(p + 16);
    n = b.version == 1 ? 1 : get64(p + 24);
    if (b.version < 1 || b.version > 2 || b.size < HEADER || b.size > end - off)
        return 0;
    for (uint64_t i = 0; i < n && i < ENTRIES_MAX && entries <= b.size && (b.size - entries) / ENTRY > i; i++)
        entry(s, &b, entries + i * ENTRY);
    return off + b.size;
}

bool is_offload(struct reader *r, uint64_t off)
{
    const uint8_t *p = reader_at(r, off, 4);

    return p && !memcmp(p, MAGIC, 4);
}

/* They stand at multiples of 8 of the section's start, one behind the other. */
void scan_offload(struct scan *s, uint64_t off, uint64_t size)
{
    uint64_t begin = off, end = off > s->r->size ? 0 : s->r->size - off < size ? s->r->size : off + size;

    s->r->window = READER_MAX;
    for (size_t i = 0; i < BINARIES_MAX && off < end && end - off >= HEADER; i++) {
        uint64_t next = binary(s, off, end);

        if (!next)
            break;
        off = begin + ((next - begin + 7) & ~(uint64_t)7);
    }
}
