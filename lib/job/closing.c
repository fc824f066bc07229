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

/* Who pays and where it runs is as for the tasks; what they ask of a node is not needed. */
static void add_directives(const struct script *s, const char *after, struct str *t)
{
    static const char *const kept[] = { "account", "qos", "reservation", "wckey", "mcs-label" };
    const char *where = s->spec->retry.partition;
    const char *more = conf_map_get(&s->spec->sbatch, "exclude");
    struct str log = { 0 }, exclude = { 0 };

    add_directive(t, "job-name", s->job_name, false);
    add_directive(t, "partition", where && *where ? where : conf_map_get(&s->spec->sbatch, "partition"), false);
    for (size_t i = 0; i < COUNT(kept); i++)
        add_directive(t, kept[i], conf_map_get(&s->spec->sbatch, kept[i]), false);
    str_addf(&exclude, "%s%s%s", more ? more : "", more && s->exclude ? "," : "", s->exclude ? s->exclude : "");
    add_directive(t, "exclude", exclude.len ? exclude.s : NULL, false);
    add_directive(t, "ntasks", "1", false);
    add_directive(t, "cpus-per-task", "1", false);
    add_directive(t, "mem", CLOSING_MEM, false);
    add_directive(t, "time", CLOSING_TIME, false);
    str_addf(t, "#SBATCH --dependency=afterany:%s\n", after);
    add_directive(t, "chdir", s->chdir, true);
    script_add_pattern(&log, s->run);
    str_add(&log, "/logs/closing-%j.log");
    add_directive(t, "output", log.s, true);
    add_directive(t, "open-mode", "append", false);
    str_release(&log);
    str_release(&exclude);
}

int script_closing(const struct script *s, const char *after, const char *submit, struct str *ret, struct err *err)
{
    char *program = esc_shell(submit), *run = esc_shell(s->run);
    struct directives check;
    struct str t = { 0 };
    int rc;

    str_add(&t, "#!/bin/bash\n");
    add_directives(s, after, &t);
    str_addf(&t, "# recon-submit %s: waits for the tasks of the run, then sends what met an unfit node elsewhere.\n"
             "umask %s\nexec %s --resume %s --closing\n", PACKAGE_VERSION, s->umask, program, run);
    rc = directives_parse(t.s, "the closing job", &check, err);
    if (rc == 0) {
        directives_release(&check);
        str_addn(ret, t.s, t.len);
    }
    str_release(&t);
    free(program);
    free(run);
    return rc;
}
