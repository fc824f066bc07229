/* --task-prolog: what Slurm's TaskProlog runs as the job's user, before the batch script and before each task of a step.
 * Lines "export NAME=VALUE" and "unset NAME" on stdout change the task's environment. Acts only when RECON_PIN came with
 * the job, prints only what differs, so that twice is once, and never stops a task: a TaskProlog that fails would. Of a pin
 * with variants those of the body that the launcher would take here: the node is looked at and the bodies are judged. */
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

int task_prolog(struct launch *l)
{
    static char *nothing[] = { NULL };
    struct strv env = { 0 };
    struct err err = { 0 };

    l->pin_path = getenv("RECON_PIN");
    l->argv = nothing;
    if (!l->pin_path || !*l->pin_path)
        return 0;
    if (file_trusted(l->pin_path, NULL, &err) || pin_read(l->pin_path, &l->pin, &err)) {
        tell(err.text);
        return 0;
    }
    l->body = &l->pin;
    if (l->pin.variants.n)
        launch_choose(l);
    pin_environment(l->body, environ, &env);
    for (size_t i = 0; i < l->body->variables.n; i++)
        print_variable(&l->body->variables.v[i], env.v);
    strv_release(&env);
    return 0;
}
