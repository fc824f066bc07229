#include "config.h"
#include "base/base.h"

#include <stdlib.h>
#include <unistd.h>

/* The one place where small host memory fails. */
static void *checked(void *p)
{
    static const char text[] = "recon: out of memory\n";

    if (!p) {
        ssize_t ignored = write(2, text, sizeof(text) - 1);
        (void)ignored;
        _exit(CODE_MEMORY);
    }
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return checked(realloc(p, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return s ? checked(strdup(s)) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    return checked(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return checked(s);
}

void vec_grow(void **v, size_t *cap, size_t size)
{
    size_t n = *cap ? *cap * 2 : 8;

    *v = checked(reallocarray(*v, n, size));
    *cap = n;
}
