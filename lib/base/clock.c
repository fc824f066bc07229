#include "config.h"
#include "base/base.h"

#include <time.h>

double clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void clock_iso(char ret[32])
{
    struct timespec t;
    struct tm tm;
    size_t n;

    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &tm);
    n = strftime(ret, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret + n, 32 - n, ".%03dZ", (int)(t.tv_nsec / 1000000));
}

int64_t clock_parse_iso(const char *s)
{
    struct tm tm = { 0 };
    const char *rest = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    if (!rest)
        return -1;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    return strcmp(rest, "Z") == 0 ? (int64_t)timegm(&tm) : -1;
}
