#include "config.h"
#include "cli.h"
#include "launch.h"

#include <stdlib.h>
#include <unistd.h>

void record_place(struct launch *l)
{
    const char *node = getenv("SLURMD_NODENAME"), *job = getenv("SLURM_JOB_ID");
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");
    char host[256] = "unknown";

    gethostname(host, sizeof(host) - 1);
    l->node = xstrdup(node && *node ? node : host);
    l->job = array && task ? xasprintf("%s_%s", array, task) : xstrdup(job);
}

int record_open(struct launch *l, struct err *err)
{
    const char *restarts = getenv("SLURM_RESTART_COUNT");
    uint64_t first = 0;

    l->began = clock_ms();
    if (!l->run_path || l->check_only) {
        l->events = events_create(NULL, err);
        return l->events ? 0 : -1;
    }
    l->run = run_open(l->run_path, err);
    if (!l->run || run_read_map(l->run, l->sub, &l->map, err) ||
        submap_slot(&l->map, l->slot, &l->datasets, &l->n_datasets, err))
        return -1;
    if (restarts && (str_to_u64(restarts, &first) || first > UINT32_MAX))
        first = 0;
    l->events = run_events(l->run, l->sub, l->slot, (uint32_t)first, &l->attempt, err);
    return l->events ? slot_wanted(l, err) : -1;
}

void record_attempt(struct launch *l)
{
    struct strv uuids = { 0 };
    struct gpu_list gpus;

    gpus_of_task(&l->facts, environ, &gpus);
    for (size_t i = 0; i < gpus.n; i++) {
        const struct facts_gpu *g = &l->facts.gpus.v[gpus.v[i]];

        strv_add(&uuids, g->mig ? g->mig : g->uuid ? g->uuid : g->pci ? g->pci : "unknown");
    }
    events_attempt(l->events, &(struct event_attempt){ .sub = l->sub,
                                                       .slot = l->slot,
                                                       .attempt = l->attempt,
                                                       .job = l->job,
                                                       .node = l->node,
                                                       .gpus = &uuids,
                                                       .pin = l->pin.digest });
    strv_release(&uuids);
    free(gpus.v);
}

int record_end(struct launch *l, const struct event_end *end)
{
    struct err err = { 0 };
    int status = end->exit;

    events_end(l->events, end);
    if (events_close(l->events, &err)) {
        cli_fail(&err);
        status = status ? status : CODE_IO;
    }
    l->events = NULL;
    return status;
}

void record_count(const struct launch *l, int status, struct slot_sum *ret)
{
    char path[32];
    struct events_read r = { 0 };

    *ret = (struct slot_sum){ .status = status };
    snprintf(path, sizeof(path), "/proc/self/fd/%d", l->run ? events_fd(l->events) : -1);
    if (l->run && events_read(path, &r, NULL) == 0)
        for (size_t i = 0; i < r.n; i++)
            if (r.v[i].type == EVENT_DATASET) {
                ret->done += str_eq(r.v[i].dataset.status, "done");
                ret->failed += str_eq(r.v[i].dataset.status, "failed");
                ret->skipped += str_eq(r.v[i].dataset.status, "skipped");
            }
    events_read_free(&r);
    if (ret->done + ret->failed + ret->skipped == 0)
        *(status ? &ret->failed : &ret->done) = l->n_datasets;
}
