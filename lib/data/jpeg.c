#include "config.h"
#include "data/data_priv.h"

#include <limits.h>
#include <stdlib.h>
#include <turbojpeg.h>

static bool starts_as_jpeg(const unsigned char *p, size_t n)
{
    return n < 2 || (p[0] == 0xff && p[1] == 0xd8);
}

int jpeg_read_bytes(const void *data, size_t n, const char *name, struct picture *ret, struct fault *fault)
{
    tjhandle tj = tjInitDecompress();
    struct picture p = { .channels = 3, .bits = 8 };
    int w = 0, h = 0, sub, space, rc = -1;

    if (!tj)
        return fault_set(fault, CODE_MEMORY, NULL, "no memory for the picture '%s'", name);
    if (n > ULONG_MAX || tjDecompressHeader3(tj, data, (unsigned long)n, &w, &h, &sub, &space)) {
        fault_set(fault, CODE_DATA, starts_as_jpeg(data, n) ? "file-truncated" : NULL,
                  "JPEG '%s' is damaged: %s", name, tjGetErrorStr2(tj));
        goto out;
    }
    if (w <= 0 || h <= 0 || w > (int)PICTURE_SIDE_MAX || h > (int)PICTURE_SIDE_MAX ||
        (uint64_t)w * (uint64_t)h / 4096 > n) {
        fault_set(fault, CODE_DATA, "file-truncated",
                  "JPEG '%s' says %d x %d pixels, its %zu bytes cannot hold them", name, w, h, n);
        goto out;
    }
    p.width = (uint32_t)w;
    p.height = (uint32_t)h;
    if (!(p.pixels = malloc((size_t)w * (size_t)h * 3))) {
        fault_set(fault, CODE_MEMORY, NULL, "no memory for the picture '%s'", name);
        goto out;
    }
    rc = tjDecompress2(tj, data, (unsigned long)n, p.pixels, w, 0, h, TJPF_RGB, 0);
    /* a warning leaves a whole picture, unless its end is missing */
    if (rc && tjGetErrorCode(tj) == TJERR_WARNING && !strstr(tjGetErrorStr2(tj), "remature end"))
        rc = 0;
    if (rc)
        fault_set(fault, CODE_DATA, "file-truncated", "JPEG '%s' is damaged: %s", name, tjGetErrorStr2(tj));
out:
    tjDestroy(tj);
    if (rc)
        picture_release(&p);
    else
        *ret = p;
    return rc;
}

int jpeg_read(const char *path, struct picture *ret, struct fault *fault)
{
    struct str bytes = { 0 };
    int rc = data_slurp(path, PICTURE_FILE_MAX, &bytes, fault);

    if (rc == 0)
        rc = jpeg_read_bytes(bytes.s, bytes.len, path, ret, fault);
    str_release(&bytes);
    return rc;
}

int jpeg_write(const char *path, const struct picture *p, int quality, struct err *err)
{
    tjhandle tj = tjInitCompress();
    unsigned char *buffer = NULL;
    unsigned long n = 0;
    int rc;

    if (!tj)
        return err_set(err, CODE_MEMORY, "no memory to encode '%s'", path);
    rc = tjCompress2(tj, p->pixels, (int)p->width, 0, (int)p->height, TJPF_RGB, &buffer, &n, TJSAMP_420,
                     quality, 0);
    if (rc)
        err_set(err, CODE_INTERNAL, "cannot encode '%s': %s", path, tjGetErrorStr2(tj));
    else
        rc = file_write(path, buffer, n, 0666, err);
    tjFree(buffer);
    tjDestroy(tj);
    return rc;
}
