/* A list of datasets in its three forms over any bytes; what is read is written as datasets.jsonl and must come back the
 * same. The first byte chooses the form. */
#include "config.h"
#include "record/record_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void same(const struct dataset *a, const struct dataset *b)
{
    must(str_eq(a->name, b->name) && str_eq(a->path, b->path));
    must(a->n_columns == b->n_columns);
    for (size_t i = 0; i < a->n_columns; i++)
        must(str_eq(a->columns[i].key, b->columns[i].key) && str_eq(a->columns[i].value, b->columns[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "l.txt", "l.tsv", "l.jsonl" };
    struct datasets l = { 0 }, back = { 0 };
    struct str text = { 0 };
    struct err err = { 0 };

    if (!size)
        return 0;
    if (datasets_parse((const char *)data + 1, size - 1, names[data[0] % 3], "/l", &l, &err)) {
        must(err.code && *err.text);
        return 0;
    }
    for (size_t i = 0; i < l.n; i++)
        dataset_line(&l.v[i], &text);
    must(datasets_parse(text.s, text.len, "b.jsonl", "/other", &back, &err) == 0 && back.n == l.n);
    for (size_t i = 0; i < l.n; i++)
        same(&l.v[i], &back.v[i]);
    datasets_release(&l);
    datasets_release(&back);
    str_release(&text);
    return 0;
}
