#include "config.h"
#include "data/data_priv.h"

#include <spng.h>
#include <stdlib.h>
#include <unistd.h>

void picture_release(struct picture *p)
{
    free(p->pixels);
    p->pixels = NULL;
}

static int refuse(const char *name, int rc, size_t n, struct fault *fault)
{
    if (rc == SPNG_EMEM)
        return fault_set(fault, CODE_MEMORY, NULL, "no memory for the picture '%s'", name);
    if (rc == SPNG_IO_EOF)
        return fault_set(fault, CODE_DATA, "file-truncated",
                         "PNG '%s' is truncated: its %zu bytes end before the picture does", name, n);
    return fault_set(fault, CODE_DATA, rc == SPNG_ESIGNATURE ? NULL : "file-truncated",
                     "PNG '%s' is damaged: %s", name, spng_strerror(rc));
}

/* The form a picture is decoded to. */
static int form_of(const struct spng_ihdr *h, struct picture *ret)
{
    bool alpha =
        h->color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA || h->color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;

    ret->width = h->width;
    ret->height = h->height;
    ret->bits = 8;
    ret->channels = alpha ? 4 : 3;
    if (h->color_type != SPNG_COLOR_TYPE_GRAYSCALE)
        return alpha ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
    ret->channels = 1;
    ret->bits = h->bit_depth == 16 ? 16 : 8;
    return h->bit_depth == 16 ? SPNG_FMT_PNG : SPNG_FMT_G8;
}

int png_read_bytes(const void *data, size_t n, const char *name, struct picture *ret, struct fault *fault)
{
    spng_ctx *ctx = spng_ctx_new(0);
    struct picture p = { 0 };
    struct spng_ihdr h;
    int rc, format;
    size_t size;

    if (!ctx)
        return refuse(name, SPNG_EMEM, n, fault);
    rc = spng_set_image_limits(ctx, PICTURE_SIDE_MAX, PICTURE_SIDE_MAX);
    if (!rc)
        rc = spng_set_chunk_limits(ctx, 16 << 20, 64 << 20);
    if (!rc)
        rc = spng_set_png_buffer(ctx, data, n);
    if (!rc)
        rc = spng_get_ihdr(ctx, &h);
    if (rc)
        goto out;
    format = form_of(&h, &p);
    if ((rc = spng_decoded_image_size(ctx, format, &size)))
        goto out;
    /* deflate packs at most about 1:1032, so a picture that is larger in words than in bytes is not asked
     * memory for */
    if (size / 1100 > n) {
        rc = SPNG_IO_EOF;
        goto out;
    }
    if (!(p.pixels = malloc(size))) {
        rc = SPNG_EMEM;
        goto out;
    }
    rc = spng_decode_image(ctx, p.pixels, size, format, 0);
out:
    spng_ctx_free(ctx);
    if (rc) {
        picture_release(&p);
        return refuse(name, rc, n, fault);
    }
    *ret = p;
    return 0;
}

int png_read(const char *path, struct picture *ret, struct fault *fault)
{
    struct str bytes = { 0 };
    int rc = data_slurp(path, PICTURE_FILE_MAX, &bytes, fault);

    if (rc == 0)
        rc = png_read_bytes(bytes.s, bytes.len, path, ret, fault);
    str_release(&bytes);
    return rc;
}

int png_probe(const char *path, struct picture *ret, struct fault *fault)
{
    static const unsigned char sig[16] = {0x89, 'P', 'N', 'G', 13,  10,  26,  10,
                                          0,    0,   0,   13,  'I', 'H', 'D', 'R'};
    static const uint8_t channels[8] = { 1, 0, 3, 3, 2, 0, 4, 0 };
    unsigned char b[33];
    uint64_t size;
    int fd = data_open(path, &size, fault);

    if (fd < 0)
        return -1;
    if (data_pread(fd, path, b, sizeof(b), 0, fault)) {
        close(fd);
        return -1;
    }
    close(fd);
    if (memcmp(b, sig, sizeof(sig)) || b[25] > 6 || !channels[b[25]])
        return fault_set(fault, CODE_DATA, NULL, "'%s' is no PNG picture", path);
    *ret = (struct picture){
        .width = (uint32_t)b[16] << 24 | (uint32_t)b[17] << 16 | (uint32_t)b[18] << 8 | b[19],
        .height = (uint32_t)b[20] << 24 | (uint32_t)b[21] << 16 | (uint32_t)b[22] << 8 | b[23],
        .channels = channels[b[25]],
        .bits = b[24]};
    if (!ret->width || !ret->height || ret->width > PICTURE_SIDE_MAX || ret->height > PICTURE_SIDE_MAX)
        return fault_set(fault, CODE_DATA, NULL, "PNG '%s' says %u x %u pixels, 1 to %u a side are read",
                         path, ret->width, ret->height, PICTURE_SIDE_MAX);
    return 0;
}

int png_write(const char *path, const struct picture *p, int level, struct err *err)
{
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr h = { .width = p->width, .height = p->height, .bit_depth = (uint8_t)p->bits };
    size_t bytes = (size_t)p->width * p->height * p->channels * (p->bits / 8), n = 0;
    void *buffer = NULL;
    int rc = ctx ? 0 : SPNG_EMEM;

    h.color_type = p->channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                   : p->channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                      : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    if (!rc)
        rc = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    if (!rc)
        rc = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, level);
    if (!rc && level <= 3)
        rc = spng_set_option(ctx, SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_SUB | SPNG_FILTER_CHOICE_UP);
    if (!rc)
        rc = spng_set_ihdr(ctx, &h);
    if (!rc)
        rc = spng_encode_image(ctx, p->pixels, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!rc)
        buffer = spng_get_png_buffer(ctx, &n, &rc);
    spng_ctx_free(ctx);
    if (rc) {
        free(buffer);
        return err_set(err, rc == SPNG_EMEM ? CODE_MEMORY : CODE_INTERNAL, "cannot encode '%s': %s", path,
                       spng_strerror(rc));
    }
    rc = file_write(path, buffer, n, 0666, err);
    free(buffer);
    return rc;
}
