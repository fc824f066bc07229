/* Associations and QOS as the controller holds them: one RPC, and none where no limit is enforced. */
#include "config.h"
#include "sched/slurm_map_priv.h"

#include <slurm/slurmdb.h>
#include <stdlib.h>
#include <unistd.h>

/* slurm.conf(5), AccountingStorageEnforce; the bits are those of src/common/read_config.h, 22.05 to 24.11. */
#define ENFORCE_LIMITS 0x2
#define ENFORCE_QOS 0x8

struct reader {
    struct accounting *a;
    const assoc_mgr_info_msg_t *m;
    const char *of; /* account or QOS that the limits are kept for */
    char *whose;
    bool qos;
};

static void add(const struct reader *r, const char *what, enum limit_kind kind, const char *tres, uint64_t most, uint64_t used)
{
    struct account_limit *l = VEC_ADD(&r->a->limits);

    *l = (struct account_limit){ .qos = r->qos, .of = xstrdup(r->of), .whose = xstrdup(r->whose), .what = what,
                                 .kind = kind, .tres = xstrdup(tres), .most = most, .used = used };
}

static void count(const struct reader *r, const char *what, enum limit_kind kind, uint32_t most, uint64_t used)
{
    if (most != INFINITE && most != NO_VAL)
        add(r, what, kind, NULL, most, used);
}

/* One number a TRES of the cluster, in the order of the message's names. */
static void tres(const struct reader *r, const char *what, enum limit_kind kind, const uint64_t *most, const uint64_t *used)
{
    for (uint32_t i = 0; most && i < r->m->tres_cnt; i++)
        if (most[i] != INFINITE64 && most[i] != NO_VAL64)
            add(r, what, kind, r->m->tres_names[i], most[i], used ? used[i] : 0);
}

/* The limits of a group hold for every association below it. */
static void take_group(struct reader *r, const slurmdb_assoc_rec_t *x)
{
    const slurmdb_assoc_usage_t *u = x->usage;

    r->whose = x->user && *x->user ? xasprintf("user '%s' in account '%s'", x->user, x->acct) : xasprintf("account '%s'", x->acct);
    count(r, "GrpSubmitJobs", LIMIT_SUBMIT, x->grp_submit_jobs, u ? u->used_submit_jobs : 0);
    count(r, "GrpJobs", LIMIT_JOBS, x->grp_jobs, u ? u->used_jobs : 0);
    tres(r, "GrpTRES", LIMIT_TRES_ALL, x->grp_tres_ctld, u ? u->grp_used_tres : NULL);
}

static void take_own(struct reader *r, const slurmdb_assoc_rec_t *x)
{
    const slurmdb_assoc_usage_t *u = x->usage;

    count(r, "MaxSubmitJobs", LIMIT_SUBMIT, x->max_submit_jobs, u ? u->used_submit_jobs : 0);
    count(r, "MaxJobs", LIMIT_JOBS, x->max_jobs, u ? u->used_jobs : 0);
    count(r, "MaxWall", LIMIT_WALL, x->max_wall_pj, 0);
    tres(r, "MaxTRESPerJob", LIMIT_TRES_JOB, x->max_tres_ctld, NULL);
    tres(r, "MaxTRESPerNode", LIMIT_TRES_JOB, x->max_tres_pn_ctld, NULL);
}

static const slurmdb_assoc_rec_t *above(const assoc_mgr_info_msg_t *m, const slurmdb_assoc_rec_t *x)
{
    const slurmdb_assoc_rec_t *found = NULL, *y;
    __typeof__(slurm_list_iterator_create(m->assoc_list)) it = slurm_list_iterator_create(m->assoc_list);

    while (!found && (y = slurm_list_next(it)))
        if (x->parent_id ? y->id == x->parent_id : (!y->user || !*y->user) && str_eq(y->acct, x->user && *x->user ? x->acct : x->parent_acct))
            found = y == x ? NULL : y;
    slurm_list_iterator_destroy(it);
    return found;
}

static const char *qos_name(const assoc_mgr_info_msg_t *m, uint32_t id)
{
    const char *name = NULL;
    const slurmdb_qos_rec_t *q;
    __typeof__(slurm_list_iterator_create(m->qos_list)) it = slurm_list_iterator_create(m->qos_list);

    while ((q = slurm_list_next(it)))
        if (id ? q->id == id : str_eq(q->name, "normal"))
            name = q->name;
    slurm_list_iterator_destroy(it);
    return name;
}

/* One of the user's: an account to submit by, its limits and those above it. */
static void take_association(struct accounting *a, const assoc_mgr_info_msg_t *m, const slurmdb_assoc_rec_t *x)
{
    struct reader r = { .a = a, .m = m, .of = x->acct };
    struct account_of *o = VEC_ADD(&a->accounts);
    int depth = 0;

    o->name = xstrdup(x->acct);
    o->qos = xstrdup(qos_name(m, x->def_qos_id));
    if (x->is_def && !a->account)
        a->account = xstrdup(x->acct);
    take_group(&r, x);
    take_own(&r, x);
    free(r.whose);
    for (const slurmdb_assoc_rec_t *y = above(m, x); y && depth < 32; y = above(m, y), depth++) {
        take_group(&r, y);
        free(r.whose);
    }
}

static const slurmdb_used_limits_t *own_use(const slurmdb_qos_rec_t *q)
{
    const slurmdb_used_limits_t *found = NULL, *x;

    if (q->usage && q->usage->user_limit_list) {
        __typeof__(slurm_list_iterator_create(q->usage->user_limit_list)) it =
            slurm_list_iterator_create(q->usage->user_limit_list);

        while ((x = slurm_list_next(it)))
            if (x->uid == getuid())
                found = x;
        slurm_list_iterator_destroy(it);
    }
    return found;
}

static void take_qos(struct accounting *a, const assoc_mgr_info_msg_t *m, const slurmdb_qos_rec_t *q)
{
    const slurmdb_used_limits_t *own = own_use(q);
    struct reader r = { .a = a, .m = m, .of = q->name, .qos = true, .whose = xasprintf("QOS '%s'", q->name) };

    count(&r, "MaxSubmitJobsPerUser", LIMIT_SUBMIT, q->max_submit_jobs_pu, own ? own->submit_jobs : 0);
    count(&r, "GrpSubmitJobs", LIMIT_SUBMIT, q->grp_submit_jobs, q->usage ? q->usage->grp_used_submit_jobs : 0);
    count(&r, "MaxJobsPerUser", LIMIT_JOBS, q->max_jobs_pu, own ? own->jobs : 0);
    count(&r, "GrpJobs", LIMIT_JOBS, q->grp_jobs, q->usage ? q->usage->grp_used_jobs : 0);
    count(&r, "MaxWall", LIMIT_WALL, q->max_wall_pj, 0);
    tres(&r, "MaxTRESPerJob", LIMIT_TRES_JOB, q->max_tres_pj_ctld, NULL);
    tres(&r, "MaxTRESPerNode", LIMIT_TRES_JOB, q->max_tres_pn_ctld, NULL);
    tres(&r, "MaxTRESPerUser", LIMIT_TRES_ALL, q->max_tres_pu_ctld, own ? own->tres : NULL);
    tres(&r, "GrpTRES", LIMIT_TRES_ALL, q->grp_tres_ctld, q->usage ? q->usage->grp_used_tres : NULL);
    free(r.whose);
}

static void take_all(struct accounting *a, const assoc_mgr_info_msg_t *m)
{
    const slurmdb_assoc_rec_t *x;
    const slurmdb_qos_rec_t *q;
    __typeof__(slurm_list_iterator_create(m->assoc_list)) it;

    a->known = m->assoc_list && m->qos_list;
    if (!a->known) {
        a->why = xstrdup("the controller gives no associations (PrivateData?)");
        return;
    }
    it = slurm_list_iterator_create(m->assoc_list);
    while ((x = slurm_list_next(it)))
        if (x->user && *x->user && x->uid == getuid())
            take_association(a, m, x);
    slurm_list_iterator_destroy(it);
    it = slurm_list_iterator_create(m->qos_list);
    while ((q = slurm_list_next(it)))
        take_qos(a, m, q);
    slurm_list_iterator_destroy(it);
}

int slurm_accounting_load(const slurm_conf_t *conf, struct accounting *ret)
{
    assoc_mgr_info_request_msg_t q = { .flags = ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS };
    assoc_mgr_info_msg_t *m = NULL;

    *ret = (struct accounting){ .known = true };
    ret->enforced = conf->accounting_storage_enforce & (ENFORCE_LIMITS | ENFORCE_QOS);
    if (!ret->enforced)
        return 0;
    ret->known = false;
    if (slurm_load_assoc_mgr_info(&q, &m))
        return -1;
    take_all(ret, m);
    slurm_free_assoc_mgr_info_msg(m);
    return 0;
}
