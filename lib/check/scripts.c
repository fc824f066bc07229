#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

#define SCRIPT_MAX ((size_t)1 << 20)

void check_scripts_add(struct check_scripts *l, const char *path)
{
    struct str t = { 0 };

    if (file_read(path, SCRIPT_MAX, &t, NULL) == 0 && t.len > 2 && t.s[0] == '#' && t.s[1] == '!' && strlen(t.s) == t.len) {
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
