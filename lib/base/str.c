#include "config.h"
#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

/* ---- growing text ---- */

static void room(struct str *t, size_t more)
{
    size_t cap = t->cap ? t->cap : 64;

    while (cap < t->len + more + 1)
        cap *= 2;
    if (cap != t->cap) {
        t->s = xrealloc(t->s, cap);
        t->cap = cap;
    }
}

void str_addn(struct str *t, const void *p, size_t n)
{
    room(t, n);
    if (n)
        memcpy(t->s + t->len, p, n);
    t->len += n;
    t->s[t->len] = 0;
}

void str_add(struct str *t, const char *s)
{
    str_addn(t, s, strlen(s));
}

PRINTF(2, 0) static void addv(struct str *t, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    room(t, 0);
    va_copy(again, ap);
    n = vsnprintf(t->s + t->len, t->cap - t->len, fmt, again);
    va_end(again);
    if (n >= 0 && (size_t)n >= t->cap - t->len) { /* it was cut */
        room(t, (size_t)n);
        n = vsnprintf(t->s + t->len, (size_t)n + 1, fmt, ap);
    }
    t->s[t->len += n > 0 ? (size_t)n : 0] = 0;
}

void str_addf(struct str *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    addv(t, fmt, ap);
    va_end(ap);
}

void str_clear(struct str *t)
{
    t->len = 0;
    if (t->s)
        t->s[0] = 0;
}

void str_release(struct str *t)
{
    free(t->s);
    *t = (struct str){ 0 };
}

char *str_take(struct str *t)
{
    char *s = t->s ? t->s : xstrdup("");

    *t = (struct str){ 0 };
    return s;
}

/* ---- lists ---- */

void strv_take(struct strv *l, char *s)
{
    if (l->n + 1 >= l->cap)
        vec_grow((void **)&l->v, &l->cap, sizeof(char *));
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
}

void strv_add(struct strv *l, const char *s)
{
    strv_take(l, xstrdup(s));
}

void strv_addf(struct strv *l, const char *fmt, ...)
{
    struct str t = { 0 };
    va_list ap;

    va_start(ap, fmt);
    addv(&t, fmt, ap);
    va_end(ap);
    strv_take(l, str_take(&t));
}

void strv_copy(struct strv *dst, const struct strv *src)
{
    for (size_t i = 0; i < src->n; i++)
        strv_add(dst, src->v[i]);
}

bool strv_has(const struct strv *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i], s))
            return true;
    return false;
}

void strv_split(struct strv *l, const char *s, const char *separators)
{
    for (;;) {
        size_t n = strcspn(s, separators);
        strv_take(l, xstrndup(s, n));
        if (!s[n])
            return;
        s += n + 1;
    }
}

void strv_release(struct strv *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct strv){ 0 };
}

/* ---- comparing ---- */

bool str_eq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
    while (*prefix)
        if (*s++ != *prefix++)
            return false;
    return true;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);

    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

/* Levenshtein distance; both texts at most 63 characters, longer ones count as far. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[64];

    if (n > 63 || m > 63)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

            best = up + 1 < best ? up + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = up;
        }
    }
    return row[m];
}

const char *str_nearest(const char *name, const void *first, size_t stride, size_t n)
{
    const char *best = NULL;
    size_t near = 1 + strlen(name) / 3;

    for (size_t i = 0; i < n; i++) {
        const char *candidate = *(const char *const *)((const char *)first + i * stride);
        size_t d = candidate ? distance(name, candidate) : SIZE_MAX;

        if (d < near || (d == near && !best)) {
            near = d;
            best = candidate;
        }
    }
    return best;
}

/* ---- numbers ---- */

int str_to_i64(const char *s, int64_t *ret)
{
    char *end;
    long long v;

    if (!s || !(isdigit((unsigned char)*s) || ((*s == '-' || *s == '+') && isdigit((unsigned char)s[1]))))
        return -1;
    errno = 0;
    v = strtoll(s, &end, 10);
    if (errno || *end)
        return -1;
    *ret = v;
    return 0;
}

int str_to_u64(const char *s, uint64_t *ret)
{
    char *end;
    unsigned long long v;

    if (!s || !isdigit((unsigned char)*s))
        return -1;
    errno = 0;
    v = strtoull(s, &end, 10);
    if (errno || *end)
        return -1;
    *ret = v;
    return 0;
}

int str_to_double(const char *s, double *ret)
{
    static locale_t c;
    locale_t l = __atomic_load_n(&c, __ATOMIC_ACQUIRE);
    char *end;
    double v;

    if (!l) { /* losing the race leaks one locale object, no more */
        l = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        __atomic_store_n(&c, l, __ATOMIC_RELEASE);
    }
    if (!s || !*s || isspace((unsigned char)*s))
        return -1;
    v = strtod_l(s, &end, l);
    if (*end || !isfinite(v))
        return -1;
    *ret = v;
    return 0;
}

int version_cmp(const char *a, const char *b)
{
    while (*a || *b) {
        size_t na = strcspn(a, "."), nb = strcspn(b, ".");

        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            unsigned long long x = strtoull(a, NULL, 10), y = strtoull(b, NULL, 10);

            if (x != y)
                return x < y ? -1 : 1;
        } else {
            int d = strncmp(a, b, na > nb ? na : nb);

            if (d)
                return d < 0 ? -1 : 1;
        }
        a += na + (a[na] == '.');
        b += nb + (b[nb] == '.');
    }
    return 0;
}

/* ---- tables of names, environments ---- */

const char *name_of(const struct name *table, int value)
{
    for (; table->name; table++)
        if (table->value == value)
            return table->name;
    return NULL;
}

int name_value(const struct name *table, const char *name, int *ret)
{
    for (; table->name; table++)
        if (str_eq(table->name, name)) {
            *ret = table->value;
            return 0;
        }
    return -1;
}

const char *env_get(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

void env_set(struct strv *env, const char *name, const char *value)
{
    size_t n = strlen(name), kept = 0;

    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
            free(env->v[i]);
        else
            env->v[kept++] = env->v[i];
    }
    env->n = kept;
    if (env->v)
        env->v[kept] = NULL;
    if (value)
        strv_addf(env, "%s=%s", name, value);
}
