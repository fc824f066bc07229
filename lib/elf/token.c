#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "elf/elf_priv.h"

static bool identifier(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Length of the token that starts after '$' at s when it is `name`, else 0. */
static size_t token(const char *s, const char *name)
{
    size_t n = strlen(name), curly = *s == '{';

    if (strncmp(s + curly, name, n))
        return 0;
    if (curly)
        return s[1 + n] == '}' ? n + 2 : 0;
    return identifier(s[n]) ? 0 : n;
}

char *token_expand(const char *s, const char *origin, const struct loader *l)
{
    const struct { const char *name, *value; } tokens[] = {
        { "ORIGIN", origin }, { "LIB", l->lib }, { "PLATFORM", l->platform },
    };
    struct str t = { 0 };

    if (!strchr(s, '$'))
        return xstrdup(s);
    while (*s) {
        size_t n = strcspn(s, "$"), used = 0;

        str_addn(&t, s, n);
        s += n;
        if (!*s)
            break;
        for (size_t i = 0; i < COUNT(tokens) && !used; i++) {
            used = token(s + 1, tokens[i].name);
            if (used && !tokens[i].value) {
                str_release(&t);
                return NULL;
            }
            if (used)
                str_add(&t, tokens[i].value);
        }
        if (!used)
            str_add(&t, "$");
        s += 1 + used;
    }
    return str_take(&t);
}

int token_origin(const char *s)
{
    int found = 0;

    for (const char *p = s; (p = strchr(p, '$')); p++) {
        size_t n = token(p + 1, "ORIGIN");

        if (n && (p != s || (p[1 + n] && p[1 + n] != '/')))
            return -1;
        found |= n > 0;
    }
    return found;
}

/* ---- paths inside another root ---- */

static char *spliced(const char *target, const char *rest)
{
    return xasprintf("%s%s%s", target, *rest ? "/" : "", rest);
}

char *root_path(const char *root, const char *path)
{
    struct str done = { 0 };
    char *todo = xstrdup(path), *at = todo, buf[PATH_MAX];
    int links = 0;

    if (!*root)
        return todo;
    str_add(&done, root);
    while (*at) {
        size_t n, keep = done.len;
        ssize_t got;

        at += strspn(at, "/");
        n = strcspn(at, "/");
        if (n == 0)
            break;
        if (n == 1 && *at == '.') {
            at++;
            continue;
        }
        if (n == 2 && !strncmp(at, "..", 2)) {
            while (done.len > strlen(root) && done.s[--done.len] != '/')
                ;
            done.s[done.len] = '\0';
            at += n;
            continue;
        }
        str_add(&done, "/");
        str_addn(&done, at, n);
        at += n;
        place_at(done.s);
        got = links < 40 ? readlink(done.s, buf, sizeof(buf) - 1) : -1;
        if (got > 0) {
            char *next;

            buf[got] = '\0';
            links++;
            done.len = *buf == '/' ? strlen(root) : keep;
            done.s[done.len] = '\0';
            next = spliced(buf, at + strspn(at, "/"));
            free(todo);
            at = todo = next;
        }
    }
    free(todo);
    return str_take(&done);
}
