#include "config.h"
#include "base/base.h"

#include <stdlib.h>

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none (Unicode 15, table 3-7). */
static size_t sequence(const unsigned char *s, size_t n)
{
    unsigned char lo = 0x80, hi = 0xBF;
    size_t len;

    if (n == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    len = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (s[0] == 0xE0)
        lo = 0xA0;
    else if (s[0] == 0xED)
        hi = 0x9F;
    else if (s[0] == 0xF0)
        lo = 0x90;
    else if (s[0] == 0xF4)
        hi = 0x8F;
    if (n < len || s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (s[i] < 0x80 || s[i] > 0xBF)
            return 0;
    return len;
}

bool utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len)
        if (!(len = sequence((const unsigned char *)s + i, n - i)))
            return false;
    return true;
}

/* C1 control characters (U+0080..U+009F) drive terminals as well. */
static bool printable(const unsigned char *s, size_t len)
{
    return len == 1 ? s[0] >= 0x20 && s[0] != 0x7F : len > 0 && !(s[0] == 0xC2 && s[1] < 0xA0);
}

char *esc_terminal(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strlen(text);
    struct str t = { 0 };

    for (size_t i = 0, len; i < n; i += len) {
        len = sequence(s + i, n - i);
        if (printable(s + i, len)) {
            str_addn(&t, s + i, len);
        } else {
            len = 1;
            str_addf(&t, "\\x%02x", s[i]);
        }
    }
    return str_take(&t);
}

char *esc_shell(const char *s)
{
    struct str t = { 0 };

    str_add(&t, "'");
    for (;;) {
        size_t n = strcspn(s, "'");

        str_addn(&t, s, n);
        if (!s[n])
            break;
        str_add(&t, "'\\''");
        s += n + 1;
    }
    str_add(&t, "'");
    return str_take(&t);
}

char *esc_html(const char *text)
{
    char *plain = esc_terminal(text);
    struct str t = { 0 };

    for (const char *s = plain; *s; s++) {
        switch (*s) {
        case '&': str_add(&t, "&amp;"); break;
        case '<': str_add(&t, "&lt;"); break;
        case '>': str_add(&t, "&gt;"); break;
        case '"': str_add(&t, "&quot;"); break;
        case '\'': str_add(&t, "&#39;"); break;
        default: str_addn(&t, s, 1);
        }
    }
    free(plain);
    return str_take(&t);
}

char *base64_encode(const void *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *s = p;
    struct str t = { 0 };

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)s[i] << 16 | (i + 1 < n ? s[i + 1] : 0) << 8 | (i + 2 < n ? s[i + 2] : 0);
        char q[4] = { digits[v >> 18], digits[v >> 12 & 63], i + 1 < n ? digits[v >> 6 & 63] : '=',
                      i + 2 < n ? digits[v & 63] : '=' };

        str_addn(&t, q, 4);
    }
    return str_take(&t);
}
