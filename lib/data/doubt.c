/* What is doubtful in coordinates, as words for people. Of a sample of 65536 points at most. */
#include "config.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLE 65536
#define TAIL 0.001
#define FAR_RATIO 1000.0 /* distance from the origin over the extent: 16 bits of a float's 24 are left at most */
#define FAR_METRES 1e5   /* floats step by 8 mm and more there */

/* What would stand at place k of v, were it sorted (Hoare's selection); afterwards nothing before it is larger. No NaN. */
static float place_of(float *v, uint64_t n, uint64_t k)
{
    uint64_t low = 0, high = n - 1;

    while (low < high) {
        float a = v[low], b = v[low + (high - low) / 2], c = v[high], pivot = fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
        uint64_t i = low, j = high;

        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            a = v[i];
            v[i++] = v[j];
            v[j--] = a;
        }
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return v[k];
}

struct side {
    double low, high;   /* all of the sample */
    double near, far;   /* without a thousandth at each end */
};

static struct side side_of(const float *xyz, uint64_t n, int axis, float *sample)
{
    uint64_t step = n / SAMPLE + 1, k = 0, cut;
    float low = INFINITY, high = -INFINITY, near, far;

    for (uint64_t i = 0; i < n; i += step) {
        float x = xyz[3 * i + (uint64_t)axis];

        low = x < low ? x : low;
        high = x > high ? x : high;
        sample[k++] = x;
    }
    cut = (uint64_t)((double)k * TAIL);
    near = place_of(sample, k, cut);
    far = place_of(sample + cut, k - cut, k - 1 - 2 * cut); /* nothing before cut is larger */
    return (struct side){ (double)low, (double)high, (double)near, (double)far };
}

void geom_doubts(const float *xyz, uint64_t n, bool points, void (*warn)(void *, const char *, const char *, const char *), void *self)
{
    static const char axis[] = "xyz";
    float *sample = xmalloc(SAMPLE * sizeof(*sample));
    double extent = 0, most = 0;
    struct side s[3];
    uint64_t zero = 0;
    char text[300];
    int at = 0;

    for (int a = 0; a < 3 && n; a++) {
        double far;

        s[a] = side_of(xyz, n, a, sample);
        extent = fmax(extent, s[a].far - s[a].near);
        far = fmax(fabs(s[a].near), fabs(s[a].far));
        at = far > most ? a : at;
        most = fmax(most, far);
    }
    free(sample);
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
