/* Poses and intrinsics over any bytes: a pose that passes is finite. */
#include "config.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fault fault = { 0 };
    struct recon_camera c;
    double m[16];

    if (pose_parse((const char *)data, size, "input", m, &fault) == 0 && pose_check(m, "input", &fault) == 0)
        for (int i = 0; i < 16; i++)
            if (!isfinite(m[i]))
                abort();
    if (camera_parse((const char *)data, size, "input", &c, &fault) == 0 && !(c.fx > 0 && c.fy > 0))
        abort();
    return 0;
}
