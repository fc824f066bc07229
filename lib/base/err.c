#include "config.h"
#include "base/base.h"

#include <errno.h>

void err_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

PRINTF(4, 0) static void fill(struct err *err, int code, int sys, const char *fmt, va_list ap)
{
    int n;

    if (!err)
        return;
    err->code = code;
    err->sys = sys;
    n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    if (n >= (int)sizeof(err->text))
        strcpy(err->text + sizeof(err->text) - 4, "...");
    err_clean(err->text);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, code, 0, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
    int sys = errno;
    size_t len;
    va_list ap;

    va_start(ap, fmt);
    fill(err, code, sys, fmt, ap);
    va_end(ap);
    if (err) {
        len = strlen(err->text);
        snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(sys));
    }
    errno = sys;
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char old[sizeof(err->text)], head[sizeof(err->text)];
    va_list ap;

    if (!err)
        return -1;
    memcpy(old, err->text, sizeof(old));
    va_start(ap, fmt);
    vsnprintf(head, sizeof(head), fmt, ap);
    va_end(ap);
    err_clean(head);
    if (snprintf(err->text, sizeof(err->text), "%s: %s", head, old) >= (int)sizeof(err->text))
        strcpy(err->text + sizeof(err->text) - 4, "...");
    return -1;
}
