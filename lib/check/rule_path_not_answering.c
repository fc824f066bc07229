#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* As recon-probe words it: "tmpdir: gave no answer within 2000 ms". */
static const struct {
    const char *part, *object;
    enum level level;
} parts[] = { { "tmpdir: gave no answer", "TMPDIR", LEVEL_ERROR },
              { "places: gave no answer", "CUDA_HOME", LEVEL_WARN } };

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < c->facts->unknown.n; i++)
        for (size_t p = 0; p < COUNT(parts); p++) {
            const char *text = c->facts->unknown.v[i], *value = case_var(c, parts[p].object);
            char *remedy;

            if (!str_starts(text, parts[p].part))
                continue;
            remedy = xasprintf("sbatch --exclude=%s, or another folder in %s", case_node(c), parts[p].object);
            finding_explain(findings_add(out, "path-not-answering", parts[p].level, SCOPE_NODE,
                                         value ? value : parts[p].object, "%s: %s on %s", parts[p].object,
                                         strchr(text, ' ') + 1, case_node(c)),
                            NULL, "a network file system whose server does not answer", remedy);
            free(remedy);
        }
    return 0;
}

const struct rule rule_path_not_answering = {
    .name = "path-not-answering",
    .doc = "TMPDIR, or a path that the libraries are looked for at, gives no answer within the deadline; a warning for the "
           "toolkits' folders",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
