#include "config.h"
#include "node/node.h"

#include <stdlib.h>

/* NAME=value or NAME="value" of os-release; owned, NULL if absent. */
static char *release_value(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, n) == 0 && line[n] == '=') {
            const char *v = line + n + 1;
            char quote = *v == '"' || *v == '\'' ? *v : 0;

            v += quote != 0;
            return xstrndup(v, strcspn(v, quote ? (char[]){ quote, '\n', 0 } : "\n"));
        }
    return NULL;
}

void facts_os_release(const char *root, struct facts *f)
{
    static const char *const files[] = { "/etc/os-release", "/usr/lib/os-release" };
    struct str t = { 0 };

    for (size_t i = 0; i < COUNT(files) && !t.len; i++) {
        char *path = xasprintf("%s%s", root, files[i]);

        file_read(path, 65536, &t, NULL);
        free(path);
    }
    f->os.id = release_value(t.s, "ID");
    f->os.version = release_value(t.s, "VERSION_ID");
    str_release(&t);
}
