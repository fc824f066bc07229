#include "config.h"
#include "check/check_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* `conda activate` is a function of the shell, not a program. What a shell knows of it while it reads a script. */
enum defined { DEFINED_NO, DEFINED_MAYBE, DEFINED_YES };
struct reading {
    enum defined conda;
    bool errexit;
    size_t line;      /* of the activation that nothing defined, 0 none */
    char *command;    /* its text; owned */
    bool maybe;       /* something that was sourced before may define it */
};

static const char *const programs[] = { "conda", "mamba", "micromamba" };

static bool is_conda(const char *word)
{
    for (size_t i = 0; i < COUNT(programs); i++)
        if (str_eq(word, programs[i]))
            return true;
    return false;
}

/* A sourced file: conda's own, or one of the user's that may run it. */
static enum defined sourced(const char *file)
{
    return file && (strstr(file, "conda.sh") || strstr(file, "mamba.sh") || str_ends(file, "/bin/activate")) ? DEFINED_YES
                                                                                                       : DEFINED_MAYBE;
}

static void know(struct reading *r, enum defined d)
{
    r->conda = d > r->conda ? d : r->conda;
}

static void command(struct reading *r, char *const *w, size_t n, const char *whole, size_t line)
{
    if (str_eq(w[0], "source") || str_eq(w[0], "."))
        know(r, sourced(n > 1 ? w[1] : NULL));
    else if (str_eq(w[0], "eval") && (strstr(whole, "hook") || strstr(whole, "conda")))
        know(r, DEFINED_YES);
    else if (str_eq(w[0], "module") || str_eq(w[0], "ml"))
        know(r, DEFINED_MAYBE);
    else if (str_starts(w[0], "conda()") || (str_eq(w[0], "function") && n > 1 && str_starts(w[1], "conda")))
        know(r, DEFINED_YES);
    else if (str_eq(w[0], "set"))
        r->errexit |= n > 1 && (str_eq(w[1], "-o") ? n > 2 && str_eq(w[2], "errexit") : w[1][0] == '-' && strchr(w[1], 'e'));
    else if (is_conda(w[0]) && n > 1 && str_eq(w[1], "activate") && r->conda != DEFINED_YES && !r->line) {
        r->line = line;
        r->maybe = r->conda == DEFINED_MAYBE;
        r->command = n > 2 ? xasprintf("%s %s %s", w[0], w[1], w[2]) : xasprintf("%s %s", w[0], w[1]);
    }
}

static bool keyword(const char *w)
{
    static const char *const words[] = { "then", "do", "else", "if", "elif", "while", "until", "!", "{", "time", "exec" };

    for (size_t i = 0; i < COUNT(words); i++)
        if (str_eq(w, words[i]))
            return true;
    return false;
}

/* One line without its newline: commands between ; & | and parentheses, up to a comment. */
static void read_line(struct reading *r, const char *text, size_t line)
{
    const char *p = text;

    while (*p) {
        struct strv w = { 0 };
        size_t from = 0;

        while (*p && !strchr(";&|()", *p)) {
            size_t n = 0;

            p += strspn(p, " \t");
            if (*p == '#')
                p += strlen(p);
            while (p[n] && !strchr(" \t;&|", p[n]) && (p[n] != '(' || p[n + 1] == ')') && (p[n] != ')' || (n && p[n - 1] == '(')))
                n++;
            if (n) {
                char *word = xstrndup(p, n);

                strv_add(&w, word);
                free(word);
            }
            p += n;
        }
        p += *p != 0;
        while (from < w.n && keyword(w.v[from]))
            from++;
        if (from < w.n)
            command(r, w.v + from, w.n - from, text, line);
        strv_release(&w);
    }
}

/* The word that ends a here-document which this line begins, owned; NULL: it begins none. */
static char *here_end(const char *line)
{
    const char *p = strstr(line, "<<");

    if (!p || p[2] == '<')
        return NULL;
    p += 2;
    p += *p == '-';
    p += strspn(p, " \t'\"\\");
    return xstrndup(p, strcspn(p, " \t'\";&|)>"));
}

static void read_script(const char *text, struct reading *r)
{
    size_t first = strcspn(text, "\n"), line = 0;
    char *here = NULL, *shebang = xstrndup(text, first);
    const char *option = strstr(shebang, " -");

    if (option && (strpbrk(option + 2, "li")))
        know(r, DEFINED_MAYBE); /* a login shell reads profiles */
    r->errexit = option && option[2] != '-' && strchr(option + 2, 'e');
    free(shebang);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        char *one = xstrndup(p, n);

        line++;
        if (here) {
            if (str_eq(one + strspn(one, "\t"), here)) {
                free(here);
                here = NULL;
            }
        } else {
            read_line(r, one, line);
            here = here_end(one);
        }
        free(one);
        p += n + (p[n] == '\n');
    }
    free(here);
}

static bool of_a_shell(const char *text)
{
    char *shebang = xstrndup(text, strcspn(text, "\n"));
    bool shell = strstr(shebang, "sh") && !strstr(shebang, "csh") && !strstr(shebang, "fish");

    free(shebang);
    return shell;
}

/* The base of the conda that the environment names, owned; NULL: it names none. */
static char *conda_base(const struct check_case *c)
{
    const char *exe = env_get(c->received, "CONDA_EXE");
    char *bin = exe && *exe == '/' ? path_dir(exe) : NULL, *base = bin ? path_dir(bin) : NULL;

    free(bin);
    return base;
}

static void report(const struct check_case *c, const struct check_script *s, const struct reading *r, struct findings *out)
{
    char *base = conda_base(c), *remedy;
    char *where = base ? esc_shell(base) : xstrdup("\"$(conda info --base)\"");

    remedy = xasprintf("source %s/etc/profile.d/conda.sh before line %zu%s", where, r->line,
                       r->errexit ? "" : ", and set -e at the top");
    finding_explain(findings_add(out, "shell-init-missing", r->maybe ? LEVEL_NOTE : LEVEL_ERROR, SCOPE_JOB, s->path,
                                 "line %zu: `%s` %s%s", r->line, r->command,
                                 r->maybe ? "works only when what the script reads before defines it"
                                          : "has no init in a batch shell",
                                 r->errexit ? "" : "; errors are not fatal there, so the script goes on with another python"),
                    r->maybe ? "maybe" : NULL,
                    "it is a function that `conda init` puts into ~/.bashrc, which a batch shell does not read", remedy);
    free(where);
    free(base);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    bool given = env_get(c->received, "BASH_ENV") || env_get(c->received, "BASH_FUNC_conda%%");

    (void)err;
    for (size_t i = 0; c->scripts && !given && i < c->scripts->n; i++) {
        struct reading r = { 0 };

        if (of_a_shell(c->scripts->v[i].text))
            read_script(c->scripts->v[i].text, &r);
        if (r.line)
            report(c, &c->scripts->v[i], &r, out);
        free(r.command);
    }
    return 0;
}

const struct rule rule_shell_init_missing = {
    .name = "shell-init-missing",
    .doc = "a script activates a conda environment in a batch shell that nothing has told how",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_ENV,
    .eval = eval,
};
