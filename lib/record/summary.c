/* How a run ended: one line for hooks, mails and people. */
#include "config.h"
#include "record/record_priv.h"

#include <jansson.h>
#include <stdlib.h>

void run_summary_json(const struct run *r, const struct run_summary *s, struct str *ret)
{
    struct json_t *o = line_new("run-summary"), *nodes = json_array();
    char now[32];

    clock_iso(now);
    put_text(o, "time", now);
    put_bytes(o, "run", run_path(r));
    put_text(o, "name", s->name);
    put_text(o, "status", s->exit ? "failed" : "ok");
    put_int(o, "exit", s->exit);
    put_u64(o, "datasets", s->datasets);
    put_u64(o, "done", s->done);
    put_u64(o, "failed", s->failed);
    put_u64(o, "skipped", s->skipped);
    put_u64(o, "open", s->datasets - s->done - s->failed - s->skipped);
    for (size_t i = 0; i < s->bad_nodes.n; i++)
        json_array_append_new(nodes, json_string(s->bad_nodes.v[i]));
    json_object_set_new(o, "bad_nodes", nodes);
    line_end(o, ret);
}
