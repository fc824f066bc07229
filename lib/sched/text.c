/* Slurm's small texts: the controller in slurm.conf, lists of array slots, output patterns. */
#include "config.h"
#include "sched/sched_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

/* The value of KEY=... in a slurm.conf, owned; NULL. Keys there know no case. */
static char *conf_value(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *v = p + strspn(p, " \t");

        if (strncasecmp(v, key, n))
            continue;
        v += n;
        v += strspn(v, " \t");
        if (*v++ == '=')
            return xstrndup(v, strcspn(v, " \t\r\n#"));
    }
    return NULL;
}

char *sched_endpoint(char *const *env)
{
    const char *server = env_get(env, "SLURM_CONF_SERVER"), *path = env_get(env, "SLURM_CONF");
    struct str text = { 0 };
    char *host, *port, *all;

    if (!path)
        path = "/etc/slurm/slurm.conf";
    if (file_read(path, FILE_MAX_DEFAULT, &text, NULL)) {
        str_release(&text);
        return server ? xasprintf("%s (SLURM_CONF_SERVER)", server) : xasprintf("unknown, '%s' cannot be read", path);
    }
    host = conf_value(text.s, "SlurmctldHost");
    if (!host)
        host = conf_value(text.s, "ControlMachine");
    port = conf_value(text.s, "SlurmctldPort");
    all = xasprintf("%s:%s of '%s'", host ? host : "unknown", port ? port : "6817", path);
    free(host);
    free(port);
    str_release(&text);
    return all;
}

int sched_slots(const char *s, void (*each)(void *arg, uint32_t slot), void *arg)
{
    while (isdigit((unsigned char)*s)) {
        char *end;
        unsigned long from = strtoul(s, &end, 10), to = from, step = 1;

        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        if (*end == ':')
            step = strtoul(end + 1, &end, 10);
        if (from > to || to > 100000000 || step == 0 || step > 100000000)
            return -1;
        for (; from <= to; from += step)
            each(arg, (uint32_t)from);
        s = end;
        if (*s == ',')
            s++;
        else
            break;
    }
    return *s == 0 || *s == '%' ? 0 : -1;
}

bool sched_is(const struct sched_job *job, const char *name, const char *command)
{
    return !job->name || str_eq(job->name, name) || (job->script_path && str_eq(job->script_path, command));
}

struct sched_task *sched_task_of(struct sched_tasks *t, uint32_t slot)
{
    struct sched_task *x;

    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].slot == slot)
            return &t->v[i];
    x = VEC_ADD(t);
    x->slot = slot;
    return x;
}

char *sched_pattern(const char *p, const struct sched_names *n)
{
    struct str t = { 0 };

    for (; *p; p++) {
        int width = 0;

        if (*p != '%') {
            str_addn(&t, p, 1);
            continue;
        }
        for (p++; isdigit((unsigned char)*p); p++)
            width = width < 10 ? width * 10 + (*p - '0') : width;
        width = width > 10 ? 10 : width;
        switch (*p) {
        case 'A': str_addf(&t, "%0*llu", width, (unsigned long long)n->array); break;
        case 'a': str_addf(&t, "%0*u", width, n->slot); break;
        case 'j':
        case 'J': str_addf(&t, "%0*llu", width, (unsigned long long)n->job); break;
        case 'x': str_add(&t, n->name); break;
        case 'N': str_add(&t, n->node); break;
        case 'u': str_add(&t, n->user); break;
        case 'b': str_addf(&t, "%u", n->slot % 10); break;
        case 'n': case 's': case 't': str_addf(&t, "%0*d", width, 0); break;
        case '%': str_add(&t, "%"); break;
        case 0: return str_take(&t);
        default: str_addn(&t, "%", 1); str_addn(&t, p, 1);
        }
    }
    str_add(&t, "");
    return str_take(&t);
}
