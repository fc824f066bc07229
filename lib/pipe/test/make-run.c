/* make-run RUN LIST PER_TASK: a run directory with submission 0, for the scenarios. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include "record/record.h"

int main(int argc, char **argv)
{
    struct datasets list = { 0 };
    struct submap map = { 0 };
    struct err err = { 0 };
    struct run *run = NULL;
    int rc = 1;

    if (argc != 4 || datasets_load(argv[2], &list, &err) || !(run = run_create(argv[1], &list, &err)))
        goto out;
    map.per_task = (uint32_t)atoi(argv[3]);
    map.n = list.n;
    map.slots = (uint32_t)((list.n + map.per_task - 1) / map.per_task);
    map.datasets = xcalloc(list.n, sizeof(*map.datasets));
    for (size_t i = 0; i < list.n; i++)
        map.datasets[i] = (uint32_t)i;
    rc = run_write_map(run, 0, &map, &err) ? 1 : 0;
out:
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    submap_release(&map);
    run_free(run);
    datasets_release(&list);
    return rc;
}
