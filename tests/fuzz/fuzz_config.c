/* What people and nodes write in libconfig and beside it, over any bytes: a pin, a node's facts, a job, a pipeline, a slurm.conf,
 * an sbatch script. The first byte chooses. What is read is written, and must be read again. */
#include "config.h"
#include "job/job.h"
#include "node/cluster.h"
#include "node/node.h"
#include "pin/pin.h"
#include "pipe/pipe.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libconfig 1.5 loses the text of a string that does not end (strbuf_append); leaks of recon's own are looked for in the unit
 * tests under the sanitizers. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static char path[64], again[64];

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void clean(void)
{
    unlink(path);
    unlink(again);
}

static void told(const struct err *err)
{
    must(err->code && *err->text);
}

static void pin(struct err *err)
{
    struct pin p = { 0 }, q = { 0 };

    if (pin_read(path, &p, err))
        return told(err);
    must(pin_write(again, &p, NULL) == 0 && pin_read(again, &q, NULL) == 0);
    pin_release(&p);
    pin_release(&q);
}

static void facts(struct err *err)
{
    struct facts f = { 0 };
    struct str text = { 0 };

    if (facts_read(path, &f, err))
        return told(err);
    facts_text(&f, &text);
    str_release(&text);
    facts_release(&f);
}

static void job(struct err *err)
{
    static char *const env[] = { NULL };
    struct spec_source s = { .file = path, .env = env, .root = "/nonexistent", .alone = true };
    struct spec j = { 0 };
    struct str text = { 0 };

    if (spec_load(&s, &j, NULL, err))
        return told(err);
    if (spec_check(&j, err))
        told(err);
    spec_show(&j, &text);
    str_release(&text);
    spec_release(&j);
}

static void pipeline(struct err *err)
{
    struct pipeline p = { 0 };

    if (pipeline_load(path, &p, err))
        return told(err);
    pipeline_release(&p);
}

static void cluster(struct err *err)
{
    struct cluster c = { 0 };

    if (cluster_read_conf(path, &c, err) == 0)
        cluster_release(&c);
    else
        told(err);
}

static void script(struct err *err)
{
    struct directives d = { 0 };
    struct str text = { 0 };

    must(file_read(path, 1 << 26, &text, NULL) == 0);
    if (directives_parse(text.s ? text.s : "", "script", &d, err) == 0)
        directives_release(&d);
    else
        told(err);
    str_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const forms[])(struct err *) = { pin, facts, job, pipeline, cluster, script };
    struct err err = { 0 };
    FILE *f;

    if (!size)
        return 0;
    if (!path[0]) {
        snprintf(path, sizeof(path), "%s/recon-fuzz-config-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
        snprintf(again, sizeof(again), "%.50s.again", path);
        atexit(clean);
    }
    f = fopen(path, "w");
    must(f && fwrite(data + 1, 1, size - 1, f) == size - 1 && fclose(f) == 0);
    forms[data[0] % COUNT(forms)](&err);
    return 0;
}
