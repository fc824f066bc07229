/* --task-prolog: what Slurm's TaskProlog runs as the job's user, before the batch script and before each task of a step.
 * Lines "export NAME=VALUE" and "unset NAME" on stdout change the task's environment. Acts only when RECON_PIN came with
 * the job, prints only what differs, so that twice is once, and never stops a task: a TaskProlog that fails would. */
#include "config.h"
#include "cli.h"
#include "launch.h"

#include <stdlib.h>

/* A line for the task's output; it stays one line. */
static void tell(const char *text)
{
    char *safe = esc_terminal(text);

    printf("print recon: %s\n", safe);
    free(safe);
}

/* Does the value that came begin (or end) with what is to be put there? */
static bool there_already(const struct pin_variable *v, const char *old)
{
    size_t n = strlen(v->value ? v->value : ""), have = strlen(old);

    if (v->how == PIN_PREPEND)
        return strncmp(old, v->value, n) == 0 && (old[n] == ':' || !old[n]);
    if (v->how == PIN_APPEND)
        return have >= n && str_eq(old + have - n, v->value) && (have == n || old[have - n - 1] == ':');
    return false;
}

static void print_variable(const struct pin_variable *v, char *const *now)
{
    const char *old = env_get(environ, v->name), *value = env_get(now, v->name);

    if (old && v->value && there_already(v, old))
        return;
    if (!value && old)
        printf("unset %s\n", v->name);
    else if (value && !str_eq(old, value) && !strpbrk(value, "\r\n"))
        printf("export %s=%s\n", v->name, value);
    else if (value && !str_eq(old, value))
        printf("print recon: '%s' holds a line break, which a TaskProlog cannot say\n", v->name);
}

int task_prolog(void)
{
    const char *path = getenv("RECON_PIN");
    struct pin pin = { 0 };
    struct strv env = { 0 };
    struct err err = { 0 };

    if (!path || !*path)
        return 0;
    if (file_trusted(path, NULL, &err) || pin_read(path, &pin, &err)) {
        tell(err.text);
        return 0;
    }
    pin_environment(&pin, environ, &env);
    for (size_t i = 0; i < pin.variables.n; i++)
        print_variable(&pin.variables.v[i], env.v);
    strv_release(&env);
    pin_release(&pin);
    return 0;
}
