#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "conf/conf_priv.h"

/* One pass over the text that knows strings, comments and numbers, no more. */
struct scan {
    const char *p, *end, *name;
    int line;
};

static void skip_to(struct scan *s, const char *stop)
{
    size_t n = strlen(stop);

    for (; s->p < s->end; s->p++) {
        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, stop, n) == 0) {
            s->p += n;
            s->line += *stop == '\n';
            return;
        }
        s->line += *s->p == '\n';
    }
}

static void skip_string(struct scan *s)
{
    for (s->p++; s->p < s->end && *s->p != '"'; s->p++) {
        if (*s->p == '\\' && s->p + 1 < s->end)
            s->p++;
        s->line += *s->p == '\n';
    }
    if (s->p < s->end)
        s->p++;
}

static bool word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '*';
}

/* A token that begins with a digit or sign; an integer that needs L and has none is refused. */
static int take_number(struct scan *s, struct err *err)
{
    const char *start = s->p, *end;
    long long v;
    char *stop;

    for (s->p++; s->p < s->end && (word(*s->p) || (*s->p == '+' && (s->p[-1] | 32) == 'e')); s->p++)
        ;
    end = s->p;
    errno = 0;
    v = strtoll(start, &stop, 0);
    if (stop != end) /* a float, a hexadecimal or suffixed integer: libconfig knows those */
        return 0;
    if (errno || v > INT_MAX || v < INT_MIN)
        return err_set(err, CODE_USAGE, "%s:%d: %.*s needs the suffix L: write %.*sL", s->name, s->line,
                       (int)(end - start), start, (int)(end - start), start);
    return 0;
}

int conf_scan(const char *text, size_t len, const char *name, struct err *err)
{
    struct scan s = { text, text + len, name, 1 };

    if (memchr(text, 0, len))
        return err_set(err, CODE_USAGE, "%s: holds a NUL byte, text is wanted", name);
    while (s.p < s.end) {
        char c = *s.p;

        if (c == '"') {
            skip_string(&s);
        } else if (c == '#' || (c == '/' && s.p + 1 < s.end && s.p[1] == '/')) {
            skip_to(&s, "\n");
        } else if (c == '/' && s.p + 1 < s.end && s.p[1] == '*') {
            skip_to(&s, "*/");
        } else if (c == '@') {
            return err_set(err, CODE_USAGE, "%s:%d: '@include' is not taken; put the text in place", name, s.line);
        } else if (isdigit((unsigned char)c) ||
                   ((c == '-' || c == '+') && s.p + 1 < s.end && isdigit((unsigned char)s.p[1]))) {
            if (take_number(&s, err))
                return -1;
        } else if (word(c)) {
            while (s.p < s.end && word(*s.p))
                s.p++;
        } else {
            s.line += c == '\n';
            s.p++;
        }
    }
    return 0;
}
