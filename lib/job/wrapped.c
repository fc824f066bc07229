/* A script of the user's own, written for sbatch: read as sbatch reads it, its traps told. */
#include "config.h"
#include "job/job.h"

#include <ctype.h>
#include <stdlib.h>

void wrapped_release(struct wrapped *w)
{
    str_release(&w->text);
    strv_release(&w->interpreter);
    directives_release(&w->directives);
    strv_release(&w->notes);
    free(w->job_name);
    *w = (struct wrapped){ 0 };
}

bool text_drop_returns(struct str *t)
{
    size_t kept = 0;

    if (!t->len || !strstr(t->s, "\r\n"))
        return false;
    for (size_t i = 0; i < t->len; i++)
        if (t->s[i] != '\r' || t->s[i + 1] != '\n')
            t->s[kept++] = t->s[i];
    t->s[kept] = 0;
    t->len = kept;
    return true;
}

/* "#!/bin/bash -e" as the kernel reads it: a path and at most one argument. */
static int read_interpreter(const char *path, struct wrapped *w, struct err *err)
{
    const char *p = w->text.s + 2 + strspn(w->text.s + 2, " \t");
    size_t n = strcspn(p, " \t\n"), line = strcspn(p, "\n");
    char *arg;

    if (!str_starts(w->text.s, "#!") || !n)
        return err_set(err, CODE_USAGE, "%s:1: a script has to begin with #! and its interpreter, as for sbatch", path);
    arg = xstrndup(p, n);
    strv_add(&w->interpreter, arg);
    free(arg);
    while (line > n && strchr(" \t", p[line - 1]))
        line--;
    n += strspn(p + n, " \t");
    if (line > n) {
        arg = xstrndup(p + n, line - n);
        strv_add(&w->interpreter, arg);
        free(arg);
    }
    return 0;
}

/* Each directive has to be one that a spec may hold; the job's name becomes the run's. */
static int check_directives(const char *path, struct wrapped *w, struct err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->directives.n; i++) {
        struct directive *d = &w->directives.v[i];

        if (str_eq(d->option->name, "job-name")) {
            free(w->job_name);
            w->job_name = d->value;
            continue;
        }
        w->directives.v[kept++] = *d;
    }
    w->directives.n = kept;
    for (size_t i = 0; i < kept; i++) {
        const struct directive *d = &w->directives.v[i];

        if (sbatch_option_check(d->option->name, d->value, err))
            return err_prefix(err, "%s:%d", path, d->line);
    }
    return 0;
}

/* ---- what a person should know ---- */

static const struct {
    const char *begins, *why;
} lookalikes[] = {
    { "# SBATCH", "a comment to sbatch, since a blank stands after '#'" },
    { "##SBATCH", "a comment to sbatch" },
    { "#sbatch", "a comment to sbatch, which wants #SBATCH in capitals" },
    { "#PBS", "a directive of PBS, which is not taken" },
    { "#BSUB", "a directive of LSF, which is not taken" },
};

static const struct {
    const char *name, *instead;
} variables[] = {
    { "SLURM_ARRAY_TASK_ID", "the number of a task, which may take several datasets; a dataset's number is RECON_DATASET" },
    { "SLURM_ARRAY_TASK_COUNT", "the number of tasks; the datasets are those of the run" },
    { "SLURM_ARRAY_TASK_MAX", "the highest number of a task; the datasets are those of the run" },
};

static bool uses(const char *line, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = strstr(line, name); p; p = strstr(p + n, name))
        if (!isalnum((unsigned char)p[n]) && p[n] != '_' && (p == line || (!isalnum((unsigned char)p[-1]) && p[-1] != '_')))
            return true;
    return false;
}

static void note_line(const char *path, int number, const char *line, bool *seen, struct strv *notes)
{
    for (size_t i = 0; i < COUNT(lookalikes); i++)
        if (str_starts(line, lookalikes[i].begins))
            strv_addf(notes, "%s:%d: '%.40s' is %s", path, number, line, lookalikes[i].why);
    for (size_t i = 0; i < COUNT(variables); i++)
        if (*line != '#' && !seen[i] && uses(line, variables[i].name)) {
            strv_addf(notes, "%s:%d: %s is %s", path, number, variables[i].name, variables[i].instead);
            seen[i] = true;
        }
}

static void find_notes(const char *path, struct wrapped *w)
{
    bool seen[COUNT(variables)] = { false };
    int number = 0;

    for (const char *p = w->text.s; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        char *line = xstrndup(p, strcspn(p, "\n"));

        note_line(path, ++number, line, seen, &w->notes);
        free(line);
    }
}

int wrapped_load(const char *path, struct wrapped *ret, struct err *err)
{
    struct wrapped w = { 0 };
    int rc = file_read(path, FILE_MAX_DEFAULT, &w.text, err);

    if (rc) {
        if (err && err->code == CODE_NOTFOUND)
            err->code = CODE_USAGE;
        err_prefix(err, "script");
    }
    if (rc == 0 && (!w.text.len || strlen(w.text.s) != w.text.len))
        rc = err_set(err, CODE_USAGE, "'%s' is %s, no script", path, w.text.len ? "binary" : "empty");
    if (rc == 0) {
        if (text_drop_returns(&w.text))
            strv_addf(&w.notes, "%s has DOS line ends, which sbatch refuses and bash cannot run; they are left out of the copy "
                      "that runs", path);
        rc = read_interpreter(path, &w, err) || directives_parse(w.text.s, path, &w.directives, err) ||
                     check_directives(path, &w, err)
                 ? -1
                 : 0;
    }
    if (rc == 0) {
        find_notes(path, &w);
        *ret = w;
    } else {
        wrapped_release(&w);
    }
    return rc;
}
