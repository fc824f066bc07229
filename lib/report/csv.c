#include "config.h"
#include "report/report_priv.h"

#include <stdlib.h>

/* RFC 4180; bytes that are no UTF-8 and control characters as \xNN. */
static void put_field(FILE *f, const char *s)
{
    char *safe = esc_terminal(s ? s : "");

    if (safe[strcspn(safe, ",\"")] == 0) {
        fputs(safe, f);
    } else {
        fputc('"', f);
        for (const char *p = safe; *p; p++)
            fputs(*p == '"' ? "\"\"" : (char[]){ *p, 0 }, f);
        fputc('"', f);
    }
    free(safe);
}

int write_csv(const struct report *r, FILE *f, struct err *err)
{
    fputs("dataset,name,status,exit,wall_ms,vertices,faces,attempts,node,rule,reason\r\n", f);
    for (uint64_t i = 0; i < r->n; i++) {
        const struct report_dataset *d = &r->datasets[i];
        const char *texts[] = { d->node, d->rule, d->reason };
        struct dataset about;

        if (run_dataset(r->run, i, &about, err))
            return -1;
        fprintf(f, "%llu,", (unsigned long long)i);
        put_field(f, about.name);
        dataset_release(&about);
        fprintf(f, ",%s,%d,%.3f,", name_of(state_names, (int)d->state), d->exit, d->wall_ms);
        if (d->vertices || d->faces)
            fprintf(f, "%llu,%llu", (unsigned long long)d->vertices, (unsigned long long)d->faces);
        else
            fputc(',', f); /* no mesh: two empty fields */
        fprintf(f, ",%u", d->attempts);
        for (size_t k = 0; k < COUNT(texts); k++) {
            fputc(',', f);
            put_field(f, texts[k]);
        }
        fputs("\r\n", f);
    }
    return 0;
}
