/* slurm.conf and what it includes, as one text. Source: slurm.conf(5): `Include FILE`, relative to the folder of slurm.conf;
 * a backslash at the end of a line goes on in the next. */
#include "config.h"
#include "node/cluster.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define DEPTH_MAX 8

/* The file of an Include line, owned; NULL: another line. */
static char *included(const char *line, const char *dir)
{
    char *name, *path;
    size_t n;

    line += strspn(line, " \t");
    if (strncasecmp(line, "include", 7) || !strchr(" \t", line[7]) || !line[7])
        return NULL;
    line += 7 + strspn(line + 7, " \t");
    n = strcspn(line, " \t\r#");
    name = xstrndup(line, n);
    path = path_join(dir, name);
    free(name);
    return path;
}

static int add_file(const char *path, const char *dir, int depth, struct str *ret, struct err *err)
{
    struct str t = { 0 };
    int rc = depth > DEPTH_MAX ? err_set(err, CODE_USAGE, "'%s': files that include each other", path)
                               : file_read(path, FILE_MAX_DEFAULT, &t, err);

    for (const char *p = rc || !t.len ? "" : t.s; *p && rc == 0; p += strcspn(p, "\n"), p += *p == '\n') {
        size_t n = strcspn(p, "\n"), kept = n;
        char *line = xstrndup(p, n), *other = included(line, dir);

        while (kept && strchr(" \t\r", line[kept - 1]))
            kept--;
        if (other)
            rc = add_file(other, dir, depth + 1, ret, err);
        else if (kept && line[kept - 1] == '\\')
            str_addn(ret, line, kept - 1);
        else
            str_addf(ret, "%s\n", line);
        free(other);
        free(line);
    }
    str_release(&t);
    return rc;
}

int cluster_read_conf(const char *path, struct cluster *ret, struct err *err)
{
    char *dir = path_dir(path);
    struct str t = { 0 };
    int rc = add_file(path, dir, 0, &t, err);

    free(dir);
    if (rc == 0) {
        *ret = (struct cluster){ .source = xstrdup(path), .array_size = 1001, .job_count = 10000, .message_timeout = 10,
                                 .unkillable_timeout = 60, .script_bytes = 4u << 20 }; /* slurm.conf(5) of 22.05 */
        cluster_take(ret, t.len ? t.s : "");
    }
    str_release(&t);
    return rc;
}
