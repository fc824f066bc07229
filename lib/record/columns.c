/* datasets.columns: the columns that any dataset has, so that a task knows those that its own datasets lack. */
#include "config.h"
#include "record/record_priv.h"

#include <jansson.h>
#include <stdlib.h>

void datasets_columns(const struct datasets *l, struct strv *ret)
{
    struct names seen = { 0 };

    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->v[i].n_columns; k++) {
            struct names_slot *at;

            names_room(&seen);
            at = names_find(&seen, l->v[i].columns[k].key);
            if (at->name)
                continue;
            strv_add(ret, l->v[i].columns[k].key);
            names_put(&seen, at, l->v[i].columns[k].key);
        }
    names_release(&seen);
}

int columns_write(const struct run *r, const struct datasets *l, struct err *err)
{
    char *path = run_file(r, "datasets.columns");
    struct strv columns = { 0 };
    struct str t = { 0 };
    int rc;

    datasets_columns(l, &columns);
    for (size_t i = 0; i < columns.n; i++) {
        json_t *o = line_new("column");

        put_bytes(o, "name", columns.v[i]);
        line_end(o, &t);
    }
    rc = columns.n ? file_write(path, t.s, t.len, r->mode, err) : 0;
    str_release(&t);
    strv_release(&columns);
    free(path);
    return rc;
}

static int read_column(void *arg, json_t *o, size_t no, struct err *err)
{
    char *name = get_bytes(o, "name");

    (void)no;
    (void)err;
    if (name && str_eq(get_text(o, "type"), "column"))
        strv_add(arg, name);
    free(name);
    return 0;
}

int run_columns(const struct run *r, struct strv *ret, struct err *err)
{
    char *path = run_file(r, "datasets.columns");
    int rc = file_lines(path, read_column, ret, err);

    free(path);
    return rc;
}
