#include "config.h"
#include "data/data_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define RIGID_TOLERANCE 1e-2

/* want numbers of text, separated by white space or commas; "nan" and "inf" count */
static int numbers(const char *text, size_t n, const char *name, double *ret, size_t want, const char *rule,
                   struct fault *fault)
{
    char word[64];
    size_t got = 0, len = 0;

    for (size_t i = 0; i <= n; i++) {
        char c = i < n ? text[i] : ' ', *end;

        if (c && !isspace((unsigned char)c) && c != ',') {
            if (len + 1 == sizeof(word))
                break;
            word[len++] = c;
            continue;
        }
        if (!len)
            continue;
        word[len] = 0;
        len = 0;
        if (got == want)
            return fault_set(fault, CODE_DATA, rule, "'%s' holds more than %zu numbers", name, want);
        ret[got++] = strtod(word, &end);
        if (end == word || *end)
            return fault_set(fault, CODE_DATA, rule,
                             "'%s' holds text that is no number where %zu numbers are wanted", name, want);
    }
    if (got != want)
        return fault_set(fault, CODE_DATA, rule, "'%s' holds %zu numbers, %zu are wanted", name, got, want);
    return 0;
}

int pose_parse(const char *text, size_t n, const char *name, double ret[16], struct fault *fault)
{
    return numbers(text, n, name, ret, 16, "pose-invalid", fault);
}

int pose_check(const double pose[16], const char *name, struct fault *fault)
{
    static const double last[4] = { 0, 0, 0, 1 };
    double worst = 0, det;

    for (int i = 0; i < 16; i++)
        if (!isfinite(pose[i]))
            return fault_set(fault, CODE_DATA, "pose-invalid",
                             "pose of '%s' is not finite: row %d, column %d is %g", name, i / 4, i % 4,
                             pose[i]);
    for (int i = 0; i < 4; i++)
        if (fabs(pose[12 + i] - last[i]) > RIGID_TOLERANCE)
            return fault_set(fault, CODE_DATA, "pose-invalid",
                             "pose of '%s' is not rigid: last row is not 0 0 0 1", name);
    for (int i = 0; i < 3; i++)
        for (int j = i; j < 3; j++) {
            double dot = pose[i] * pose[j] + pose[4 + i] * pose[4 + j] + pose[8 + i] * pose[8 + j] - (i == j);

            worst = fmax(worst, fabs(dot));
        }
    if (worst > RIGID_TOLERANCE)
        return fault_set(fault, CODE_DATA, "pose-invalid",
                         "pose of '%s' is not rigid: off from a rotation by %.3g, at most %g wanted", name,
                         worst, RIGID_TOLERANCE);
    det = pose[0] * (pose[5] * pose[10] - pose[6] * pose[9]) -
          pose[1] * (pose[4] * pose[10] - pose[6] * pose[8]) +
          pose[2] * (pose[4] * pose[9] - pose[5] * pose[8]);
    if (det < 0)
        return fault_set(fault, CODE_DATA, "pose-invalid",
                         "pose of '%s' is a reflection (determinant %.3g), a rotation is wanted", name, det);
    return 0;
}

int camera_parse(const char *text, size_t n, const char *name, struct recon_camera *ret, struct fault *fault)
{
    double k[9];

    if (numbers(text, n, name, k, 9, NULL, fault))
        return -1;
    for (int i = 0; i < 9; i++)
        if (!isfinite(k[i]))
            return fault_set(fault, CODE_DATA, NULL, "'%s' holds a number that is not finite", name);
    if (k[0] <= 0 || k[4] <= 0 || fabs(k[8] - 1) > 1e-6)
        return fault_set(fault, CODE_DATA, NULL,
                         "'%s' is no camera: fx %g and fy %g must be above 0, the last number %g must be 1",
                         name, k[0], k[4], k[8]);
    *ret = (struct recon_camera){ .fx = k[0], .fy = k[4], .cx = k[2], .cy = k[5] };
    return 0;
}

bool pose_from(const double q[4], const double t[3], double ret[16])
{
    double n = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], w, x, y, z;

    if (!isfinite(n) || !(n > 1e-12) || !isfinite(t[0] + t[1] + t[2]))
        return false;
    n = 1 / sqrt(n);
    w = q[0] * n, x = q[1] * n, y = q[2] * n, z = q[3] * n;
    memcpy(ret, (double[16]){ 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), t[0],
                              2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), t[1],
                              2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), t[2], 0, 0, 0, 1 },
           16 * sizeof(double));
    return true;
}

void pose_convert(double pose[16], const struct frames_options *o)
{
    double r[16];

    for (int i = 0; i < 3 && o->pose_scale > 0; i++)
        pose[4 * i + 3] *= o->pose_scale;
    for (int i = 0; i < 3; i++) { /* OpenGL: the camera's y and z turn; OpenNI: y of the camera and of the world */
        if (o->axes != FRAMES_OPENCV)
            pose[4 * i + 1] = -pose[4 * i + 1];
        if (o->axes == FRAMES_OPENGL)
            pose[4 * i + 2] = -pose[4 * i + 2];
    }
    for (int i = 0; i < 4 && o->axes == FRAMES_OPENNI; i++)
        pose[4 + i] = -pose[4 + i];
    if (!o->transform)
        return;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            r[4 * i + j] = 0;
            for (int k = 0; k < 4; k++)
                r[4 * i + j] += o->transform[4 * i + k] * pose[4 * k + j];
        }
    memcpy(pose, r, sizeof(r));
}
