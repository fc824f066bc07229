/* The command line: recon-submit's own options, and sbatch's by the rows of job's table. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>

enum { K_DATASETS = 256, K_RUN_DIR, K_WRAP, K_SET, K_SHOW, K_DRY, K_TEST, K_LOCAL, K_PARSABLE, K_RESUME, K_REDO, K_WATCH,
       K_CANCEL, K_CLOSING, K_HOLD, K_SBATCH = 1024 };

static const struct argp_option own[] = {
    { "datasets", K_DATASETS, "LIST", 0, "One path a line; .tsv or .jsonl: more columns", 1 },
    { "wrap-script", K_WRAP, "SCRIPT", 0, "An sbatch script of your own, run once a dataset; what stands after -- are its arguments", 1 },
    { "set", K_SET, "KEY=VALUE", 0, "A key of job.conf over what the files say; may be given again", 1 },
    { "run-dir", K_RUN_DIR, "RUN", 0, "The run directory (default: runs/NAME-<8 hex>)", 1 },
    { "show-config", K_SHOW, NULL, 0, "Print the job with all layers merged, and end", 2 },
    { "dry-run", K_DRY, NULL, 0, "Print the script that would be submitted, and end", 2 },
    { "test-only", K_TEST, NULL, 0, "Ask the cluster whether the job could run, and end", 2 },
    { "local", K_LOCAL, "N", OPTION_ARG_OPTIONAL, "Run the tasks of the script on this host, N at a time", 2 },
    { "watch", K_WATCH, "RUN", OPTION_ARG_OPTIONAL, "Show the progress (of RUN) until the end; Ctrl-C detaches", 2 },
    { "parsable", K_PARSABLE, NULL, 0, "Print run directory and job id separated by a tab", 2 },
    { "resume", K_RESUME, "RUN", 0, "Submit again what has no good result", 3 },
    { "redo-changed", K_REDO, NULL, 0, "With --resume: drop results of another pin or pipeline and make them again", 3 },
    { "closing", K_CLOSING, NULL, 0, "With --resume, from the run's own closing job: only what another node or more time may do", 3 },
    { "hold-agreed", K_HOLD, "RUN", 0, "Hold what waits when two nodes agree that no node can do it", 3 },
    { "cancel", K_CANCEL, "RUN", 0, "Cancel what is still queued or running", 3 },
    { 0 },
};

static void fail(struct options *o, const struct err *why)
{
    if (!o->err.code)
        o->err = *why;
}

static void usage(struct options *o, const char *fmt, const char *what)
{
    struct err why = { 0 };

    err_set(&why, CODE_USAGE, "%s '%s'; see --help", fmt, what);
    fail(o, &why);
}

static void take_sbatch(struct options *o, const struct sbatch_option *row, const char *value)
{
    struct err why = { 0 };

    if (sbatch_option_check(row->name, value, &why))
        fail(o, &why);
    conf_map_set(&o->sbatch, row->name, value ? value : "true", value ? CONF_KIND_TEXT : CONF_KIND_BOOL);
}

static error_t take_key(int key, char *value, struct options *o)
{
    for (const struct sbatch_option *row = sbatch_options; row->name; row++)
        if (key == (row->letter ? row->letter : K_SBATCH + (int)(row - sbatch_options))) {
            take_sbatch(o, row, value);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

static void take_argument(struct options *o, char *value, bool after_dashes)
{
    if (after_dashes)
        strv_add(&o->program, value);
    else if (!o->job_conf && !o->program.n)
        o->job_conf = value;
    else
        usage(o, "unexpected argument", value);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case K_DATASETS: o->datasets = value; break;
    case K_RUN_DIR: o->run_dir = value; break;
    case K_WRAP: o->wrap_script = value; break;
    case K_SET: strv_add(&o->set, value); break;
    case K_SHOW: o->show_config = true; break;
    case K_DRY: o->dry_run = true; break;
    case K_TEST: o->test_only = true; break;
    case K_PARSABLE: o->parsable = true; break;
    case K_RESUME: o->resume = value; break;
    case K_REDO: o->redo = true; break;
    case K_CANCEL: o->cancel = value; break;
    case K_CLOSING: o->closing = true; break;
    case K_HOLD: o->hold_run = value; break;
    case K_WATCH: o->watch = true; o->watch_run = value; break;
    case K_LOCAL:
        o->local = true;
        if (value && (str_to_i64(value, &o->at_a_time) || o->at_a_time < 1 || o->at_a_time > 4096))
            usage(o, "--local wants a number from 1 to 4096, found", value);
        break;
    case ARGP_KEY_ARG: take_argument(o, value, state->quoted && state->next > state->quoted); break;
    default: return take_key(key, value, o);
    }
    return 0;
}

/* Both tables in one; sbatch's rows that are refused are hidden, so that they can say why. */
static struct argp_option *all_options(void)
{
    size_t n_own = COUNT(own) - 1, n = 0;
    struct argp_option *rows;

    while (sbatch_options[n].name)
        n++;
    rows = xcalloc(n_own + n + 2, sizeof(*rows));
    memcpy(rows, own, n_own * sizeof(*rows));
    rows[n_own] = (struct argp_option){ .doc = "Options of sbatch, forwarded:", .group = 8 };
    for (size_t i = 0; i < n; i++) {
        const struct sbatch_option *s = &sbatch_options[i];

        rows[n_own + 1 + i] = (struct argp_option){
            .name = s->name, .key = s->letter ? s->letter : K_SBATCH + (int)i, .group = 8,
            .arg = s->arg == ARG_NONE ? NULL : "VALUE",
            .flags = (s->arg == ARG_MAYBE ? OPTION_ARG_OPTIONAL : 0) |
                     (s->flags & (OPTION_OURS | OPTION_REFUSED) ? OPTION_HIDDEN : 0),
        };
    }
    return rows;
}

static int count_modes(const struct options *o)
{
    return !!o->cancel + !!o->hold_run + !!o->resume + !!o->watch_run + !!(o->job_conf || o->datasets || o->program.n || o->wrap_script);
}

static int check(struct options *o, struct err *err)
{
    if (o->err.code) {
        *err = o->err;
        return -1;
    }
    if (!count_modes(o))
        return err_set(err, CODE_USAGE, "what is to be run? JOB.conf, or --datasets LIST -- PROGRAM ARG...; see --help");
    if (count_modes(o) > 1 && (o->cancel || o->hold_run || o->resume || o->watch_run))
        return err_set(err, CODE_USAGE, "--resume, --watch=RUN, --cancel and --hold-agreed take a run alone, no job beside it");
    if (o->job_conf && o->wrap_script)
        return err_set(err, CODE_USAGE, "both '%s' and --wrap-script; write script = \"%s\" into the former", o->job_conf,
                       o->wrap_script);
    if (o->job_conf && o->program.n)
        return err_set(err, CODE_USAGE, "both '%s' and a program after '--'; one says what to run", o->job_conf);
    if ((o->program.n || o->wrap_script) && !o->datasets)
        return err_set(err, CODE_USAGE, "--datasets LIST is missing: what '%s' is to be run over",
                       o->wrap_script ? o->wrap_script : o->program.v[0]);
    if (o->local && (o->watch || o->test_only))
        return err_set(err, CODE_USAGE, "--local shows its progress itself and asks no cluster");
    if (o->resume && o->run_dir)
        return err_set(err, CODE_USAGE, "--run-dir names a new run, --resume an old one");
    if ((o->redo || o->closing) && !o->resume)
        return err_set(err, CODE_USAGE, "--%s goes with --resume RUN", o->redo ? "redo-changed" : "closing");
    return 0;
}

/* A key of job.conf that was taken for an option. */
static char *hint(const char *name)
{
    char *key = xstrdup(name), *text = NULL;

    for (char *p = key; *p; p++)
        *p = *p == '-' ? '_' : *p;
    for (const struct conf_row *row = spec_rows; row->name; row++)
        if (str_eq(row->name, key))
            text = xasprintf("'--set %s=...'", key);
    free(key);
    return text;
}

int options_parse(int argc, char **argv, struct options *o)
{
    struct argp_option *rows = all_options();
    struct argp argp = { rows, parse, "JOB.conf\n--datasets LIST -- PROGRAM ARG...\n--wrap-script SCRIPT --datasets LIST [-- ARG...]\n--resume RUN\n--watch=RUN\n--cancel RUN\n--hold-agreed RUN",
                         "Submits one task or more over a list of datasets to Slurm, or runs them here.\v"
                         "In PROGRAM's arguments {dataset} is a dataset's path, {out} the folder for its results, "
                         "{COLUMN} a column of the list. A wrapped script finds them in RECON_DATASET_PATH, RECON_OUT, RECON_COLUMN_NAME.",
                         NULL, NULL, NULL };
    struct err err = { 0 };
    int rest, rc = cli_parse_hinted(&argp, argc, argv, &rest, o, hint);

    free(rows);
    if (rc)
        return rc;
    return check(o, &err) ? cli_fail(&err) : 0;
}

void options_release(struct options *o)
{
    strv_release(&o->program);
    strv_release(&o->set);
    conf_map_release(&o->sbatch);
}
