#include "config.h"
#include "node/node_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

/* Where toolkits say their release: 10.1 and older to 11.0 version.txt, since then version.json, and always
 * cuda.h. */
static const struct {
    const char *file, *before[2]; /* texts that stand before the number, in order */
    int scale;                    /* the number is 1000 * major + 10 * minor */
} places[] = {
    { "version.json", { "\"cuda\"", "\"version\"" }, 0 },
    { "version.txt", { "CUDA Version", NULL }, 0 },
    { "include/cuda.h", { "#define CUDA_VERSION", NULL }, 1 },
};

/* "11.0.221" -> "11.0"; owned, NULL if there is no number with a dot. */
static char *short_version(const char *s)
{
    size_t major = strspn(s, "0123456789"), minor = s[major] == '.' ? strspn(s + major + 1, "0123456789") : 0;

    return major && minor ? xstrndup(s, major + 1 + minor) : NULL;
}

static char *number_after(const char *text, const char *const before[2], int scale)
{
    for (size_t i = 0; i < 2 && before[i]; i++) {
        text = strstr(text, before[i]);
        if (!text)
            return NULL;
        text += strlen(before[i]);
    }
    text += strcspn(text, "0123456789\n");
    if (!scale)
        return short_version(text);
    return isdigit((unsigned char)*text) ? xasprintf("%d.%d", atoi(text) / 1000, atoi(text) % 1000 / 10)
                                         : NULL;
}

static bool has(const char *dir, const char *name, int mode)
{
    char *path = path_join(dir, name);
    bool there = access(path, mode) == 0;

    free(path);
    return there;
}

void facts_toolkit_read(const char *dir, struct facts_toolkit *ret)
{
    *ret = (struct facts_toolkit){ .path = xstrdup(dir),
                                   .nvcc = has(dir, "bin/nvcc", X_OK),
                                   .headers = has(dir, "include/cuda_runtime.h", R_OK) };
    for (size_t i = 0; i < COUNT(places) && !ret->version; i++) {
        char *path = path_join(dir, places[i].file);
        struct str t = { 0 };

        if (file_read(path, (size_t)8 << 20, &t, NULL) == 0 && t.len)
            ret->version = number_after(t.s, places[i].before, places[i].scale);
        str_release(&t);
        free(path);
    }
}
