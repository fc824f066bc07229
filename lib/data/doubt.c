/* What is doubtful in coordinates, as words for people. A sample of 65536 points at most is sorted. */
#include "config.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLE 65536
#define TAIL 0.001
#define FAR_RATIO 1000.0 /* distance from the origin over the extent: 16 bits of a float's 24 are left at most */
#define FAR_METRES 1e5   /* floats step by 8 mm and more there */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

struct side {
    double low, high;   /* all of the sample */
    double near, far;   /* without a thousandth at each end */
};

static struct side side_of(const float *xyz, uint64_t n, int axis, float *sorted)
{
    uint64_t step = n / SAMPLE + 1, k = 0, cut;

    for (uint64_t i = 0; i < n; i += step)
        sorted[k++] = xyz[3 * i + (uint64_t)axis];
    qsort(sorted, k, sizeof(*sorted), ascending);
    cut = (uint64_t)((double)k * TAIL);
    return (struct side){ (double)sorted[0], (double)sorted[k - 1], (double)sorted[cut], (double)sorted[k - 1 - cut] };
}

void geom_doubts(const float *xyz, uint64_t n, bool points, void (*warn)(void *, const char *, const char *, const char *), void *self)
{
    static const char axis[] = "xyz";
    float *sorted = xmalloc(SAMPLE * sizeof(*sorted));
    double extent = 0, most = 0;
    struct side s[3];
    uint64_t zero = 0;
    char text[300];
    int at = 0;

    for (int a = 0; a < 3 && n; a++) {
        double far;

        s[a] = side_of(xyz, n, a, sorted);
        extent = fmax(extent, s[a].far - s[a].near);
        far = fmax(fabs(s[a].near), fabs(s[a].far));
        at = far > most ? a : at;
        most = fmax(most, far);
    }
    free(sorted);
    if (n > 1 && (most > FAR_RATIO * extent || (most >= FAR_METRES && most > 10 * extent)) && most > 0) {
        snprintf(text, sizeof(text), "coordinates reach %.9g along %c and span %.6g: floats step by %.3g there; read with offset = %.0f, %.0f, %.0f",
                 most, axis[at], extent, (double)(nextafterf((float)most, INFINITY) - (float)most), s[0].near, s[1].near, s[2].near);
        warn(self, "coord-offset", "coordinates", text);
    }
    for (uint64_t i = 0; points && i < n; i++)
        zero += xyz[3 * i + 2] == 0;
    if (zero && zero < n && (s[2].far - s[2].near) > 0) {
        snprintf(text, sizeof(text), "%llu of %llu points have z = 0, which depth that was not seen becomes; zero = drop leaves them out",
                 (unsigned long long)zero, (unsigned long long)n);
        warn(self, "depth-range", "points", text);
    }
    for (int a = 0; points && a < 3 && n > 1000; a++)
        if (s[a].high - s[a].low > 3 * (s[a].far - s[a].near) && s[a].far > s[a].near) {
            snprintf(text, sizeof(text), "points reach from %.6g to %.6g along %c, 99.8 %% of them from %.6g to %.6g", s[a].low, s[a].high, axis[a],
                     s[a].near, s[a].far);
            warn(self, "bounds-outlier", "points", text);
        }
}
