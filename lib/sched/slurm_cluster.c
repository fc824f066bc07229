/* The cluster as the controller tells it: configuration, partitions, nodes. */
#include "config.h"
#include "sched/slurm_map_priv.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>

static void take_config(const slurm_conf_t *conf, struct cluster *c)
{
    const char *size = conf->sched_params ? strstr(conf->sched_params, "max_script_size=") : NULL;

    c->source = xstrdup("the controller");
    c->array_size = conf->max_array_sz;
    c->job_count = conf->max_job_cnt;
    c->message_timeout = conf->msg_timeout;
    c->unkillable_timeout = conf->unkillable_timeout;
    c->gres_types = xstrdup(conf->gres_plugins && *conf->gres_plugins ? conf->gres_plugins : NULL);
    c->select_type = xstrdup(conf->select_type);
    c->script_bytes = size ? strtoull(size + 16, NULL, 10) : 4u << 20;
}

static void take_partition(const partition_info_t *p, struct cluster *c)
{
    struct cluster_partition *x = VEC_ADD(&c->partitions);

    x->name = xstrdup(p->name);
    x->is_default = p->flags & PART_FLAG_DEFAULT;
    x->down = p->state_up != PARTITION_UP;
    x->max_seconds = p->max_time == INFINITE || p->max_time == NO_VAL ? -1 : (int64_t)p->max_time * 60;
    if (p->nodes)
        hostlist_expand(p->nodes, &x->nodes, NULL);
}

static void take_node(const node_info_t *n, struct cluster *c)
{
    struct cluster_node *x;

    if (!n->name || !*n->name)
        return;
    x = VEC_ADD(&c->nodes);
    x->name = xstrdup(n->name);
    x->cpus = n->cpus;
    x->memory_mib = n->real_memory;
    x->gres = xstrdup(n->gres && *n->gres ? n->gres : NULL);
    x->features = xstrdup(n->features && *n->features ? n->features : NULL);
    x->down = (n->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN || (n->node_state & NODE_STATE_DRAIN);
}

int slurm_cluster_load(const slurm_conf_t *conf, struct cluster *ret)
{
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;
    int rc = slurm_load_partitions(0, &partitions, SHOW_ALL);

    if (rc == 0)
        rc = slurm_load_node(0, &nodes, SHOW_ALL);
    take_config(conf, ret);
    for (uint32_t i = 0; rc == 0 && i < partitions->record_count; i++)
        take_partition(&partitions->partition_array[i], ret);
    for (uint32_t i = 0; rc == 0 && i < nodes->record_count; i++)
        take_node(&nodes->node_array[i], ret);
    if (partitions)
        slurm_free_partition_info_msg(partitions);
    if (nodes)
        slurm_free_node_info_msg(nodes);
    return rc ? -1 : 0;
}
