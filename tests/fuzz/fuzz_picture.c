/* PNG and JPEG over any bytes: refused in one line, or a picture of a size that its bytes can hold. */
#include "config.h"
#include "data/data.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rc, struct picture *p, const struct fault *fault)
{
    if (rc) {
        if (!fault->err.text[0] || strchr(fault->err.text, '\n'))
            abort();
        return;
    }
    if (!p->width || !p->height || !p->pixels || (p->bits != 8 && p->bits != 16))
        abort();
    picture_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fault fault = { 0 };
    struct picture p;

    check(png_read_bytes(data, size, "input", &p, &fault), &p, &fault);
    memset(&fault, 0, sizeof(fault));
    check(jpeg_read_bytes(data, size, "input", &p, &fault), &p, &fault);
    return 0;
}
