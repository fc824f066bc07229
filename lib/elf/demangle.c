/* C++ names for people. The demangler is libsupc++'s, in the form that allocates nothing: a name that unfolds to
 * megabytes is stopped by the callback. */
#include "config.h"

#include <setjmp.h>
#include "elf/elf.h"

#define SHOWN_MAX 1000  /* bytes of a name that people are shown */
#define MANGLED_MAX 8000

#ifdef HAVE_SUPCXX
/* Of GCC's libsupc++ (gcc/libiberty/cp-demangle.c), which has no header for it. 0: done. */
int __gcclibcxx_demangle_callback(const char *mangled, void (*call)(const char *, size_t, void *), void *opaque);

struct demangling {
    jmp_buf enough;
    size_t n;
    char text[SHOWN_MAX];
};

static void take(const char *s, size_t n, void *opaque)
{
    struct demangling *d = opaque;
    size_t room = sizeof(d->text) - d->n;

    memcpy(d->text + d->n, s, n < room ? n : room);
    d->n += n < room ? n : room;
    if (n > room)
        longjmp(d->enough, 1);
}

static char *demangled(const char *name)
{
    struct demangling d;

    d.n = 0;
    if (setjmp(d.enough))
        return xasprintf("%.*s...", (int)d.n, d.text);
    return __gcclibcxx_demangle_callback(name, take, &d) ? NULL : xstrndup(d.text, d.n);
}
#else
static char *demangled(const char *name)
{
    (void)name;
    return NULL;
}
#endif

char *symbol_demangled(const char *name)
{
    return str_starts(name, "_Z") && strlen(name) < MANGLED_MAX ? demangled(name) : NULL;
}
