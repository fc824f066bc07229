/* The script of the closing job: it waits for the run's tasks and sends again what met an unfit node. */
#include "config.h"
#include "job/job_priv.h"

#include <stdlib.h>

#define CLOSING_TIME "0-00:10:00"
#define CLOSING_MEM "512M" /* the state of a million datasets takes a tenth of it */

static void add_directive(struct str *t, const char *name, const char *value, bool quoted)
{
    if (!value)
        return;
    str_addf(t, "#SBATCH --%s=", name);
    script_add_value(t, value, quoted);
    str_add(t, "\n");
}

/* Owned, NULL: none. */
static char *excluded(const struct script *s)
{
    const char *more = conf_map_get(&s->spec->sbatch, "exclude");

    if (!more || !s->exclude)
        return xstrdup(more ? more : s->exclude);
    return xasprintf("%s,%s", more, s->exclude);
}

/* Who pays and where it runs is as for the tasks; what they ask of a node is not needed. The log is opened by the script:
 * on a node without the run directory Slurm would fail the job before it could do anything. */
static void add_directives(const struct script *s, const char *after, const char *exclude, struct str *t)
{
    static const char *const kept[] = { "account", "qos", "reservation", "wckey", "mcs-label" };
    const char *where = s->spec->retry.partition;

    add_directive(t, "job-name", s->job_name, false);
    add_directive(t, "partition", where && *where ? where : conf_map_get(&s->spec->sbatch, "partition"), false);
    for (size_t i = 0; i < COUNT(kept); i++)
        add_directive(t, kept[i], conf_map_get(&s->spec->sbatch, kept[i]), false);
    add_directive(t, "exclude", exclude, false);
    add_directive(t, "ntasks", "1", false);
    add_directive(t, "cpus-per-task", "1", false);
    add_directive(t, "mem", CLOSING_MEM, false);
    add_directive(t, "time", CLOSING_TIME, false);
    str_addf(t, "#SBATCH --dependency=afterany:%s\n", after);
    if (s->spec->on_end.mail && !s->spec->on_end.mailer) {
        add_directive(t, "mail-type", "END", false);
        add_directive(t, "mail-user", s->spec->on_end.mail, true);
    }
    add_directive(t, "chdir", s->chdir, true);
    add_directive(t, "output", "/dev/null", false);
}

/* A node that lacks what the others share hands the job on. */
static void add_body(const struct script *s, const char *submit, const char *exclude, struct str *t)
{
    char *program = esc_shell(submit), *run = esc_shell(s->run), *not = exclude ? esc_shell(exclude) : NULL;
    char *first = not ? xasprintf("%s,", not) : xstrdup("");

    str_addf(t, "# recon-submit %s: waits for the tasks of the run, then sends what met an unfit node elsewhere.\n"
             "umask %s\nrun=%s\nprogram=%s\n", PACKAGE_VERSION, s->umask, run, program);
    str_addf(t,
             "if [ -d \"$run/logs\" ] && [ -x \"$program\" ]; then\n"
             "    exec \"$program\" --resume \"$run\" --closing >>\"$run/logs/closing-$SLURM_JOB_ID.log\" 2>&1\n"
             "fi\n"
             "# they are not on this node: another one, three times at most\n"
             "export RECON_CLOSING=$((${RECON_CLOSING:-0} + 1))\n"
             "export RECON_CLOSING_NOT=\"${RECON_CLOSING_NOT:+$RECON_CLOSING_NOT,}$SLURMD_NODENAME\"\n"
             "[ \"$RECON_CLOSING\" -le 3 ] && exec sbatch --exclude=%s\"$RECON_CLOSING_NOT\" \"$0\"\n"
             "exit %d\n", first, CODE_NODE);
    free(program);
    free(run);
    free(not);
    free(first);
}

int script_closing(const struct script *s, const char *after, const char *submit, struct str *ret, struct err *err)
{
    char *exclude = excluded(s);
    struct directives check;
    struct str t = { 0 };
    int rc;

    str_add(&t, "#!/bin/bash\n");
    add_directives(s, after, exclude, &t);
    add_body(s, submit, exclude, &t);
    rc = directives_parse(t.s, "the closing job", &check, err);
    if (rc == 0) {
        directives_release(&check);
        str_addn(ret, t.s, t.len);
    }
    str_release(&t);
    free(exclude);
    return rc;
}
