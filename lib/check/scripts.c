#include "config.h"
#include "check/check_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SCRIPT_MAX ((size_t)1 << 20)

/* A program of megabytes is not read for this. */
static bool begins_as_script(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char head[2];
    bool yes = fd >= 0 && read(fd, head, 2) == 2 && head[0] == '#' && head[1] == '!';

    if (fd >= 0)
        close(fd);
    return yes;
}

void check_scripts_add(struct check_scripts *l, const char *path)
{
    struct str t = { 0 };

    if (begins_as_script(path) && file_read(path, SCRIPT_MAX, &t, NULL) == 0 && strlen(t.s) == t.len) {
        struct check_script *s = VEC_ADD(l);

        s->path = xstrdup(path);
        s->text = str_take(&t);
    }
    str_release(&t);
}

void check_scripts_release(struct check_scripts *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].path);
        free(l->v[i].text);
    }
    free(l->v);
    *l = (struct check_scripts){ 0 };
}
