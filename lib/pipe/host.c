/* The services that kernels may ask for (recon_host). */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include "pipe/pipe_priv.h"

#define ALIGN 64
#define MAGIC 0x7265636f6e6d656dull

struct head { /* before each block, ALIGN bytes in all */
    uint64_t bytes, magic;
    struct head *before, *after; /* all blocks of a state, so that what a kernel forgets can be freed */
};
_Static_assert(sizeof(struct head) <= ALIGN, "the head of a block fits before it");

static volatile sig_atomic_t cancel_signal;

void runner_cancel(int signal)
{
    cancel_signal = signal;
}

int runner_cancelled(void)
{
    return cancel_signal;
}

static struct host_state *state_of(struct recon_ctx *ctx)
{
    return ctx->runner;
}

/* ---- memory ---- */

void *host_alloc(struct recon_ctx *ctx, uint64_t bytes)
{
    struct host_state *s = state_of(ctx);
    void *block = NULL;
    struct head *h;

    if (bytes > SIZE_MAX / 2 || posix_memalign(&block, ALIGN, (size_t)bytes + ALIGN)) {
        char text[24];

        ctx->host->fail(ctx, CODE_MEMORY, NULL, NULL, "no %s of host memory left", human_bytes(bytes, text));
        return NULL;
    }
    h = block;
    *h = (struct head){ bytes, MAGIC, NULL, s->blocks };
    if (s->blocks)
        s->blocks->before = h;
    s->blocks = h;
    s->now += bytes;
    s->peak = s->now > s->peak ? s->now : s->peak;
    return (char *)block + ALIGN;
}

static void unlink_block(struct host_state *s, struct head *h)
{
    if (h->before)
        h->before->after = h->after;
    else
        s->blocks = h->after;
    if (h->after)
        h->after->before = h->before;
    h->magic = 0;
    s->now -= h->bytes;
    free(h);
}

void host_free(struct recon_ctx *ctx, void *p)
{
    struct host_state *s = state_of(ctx);
    struct head *h;

    if (!p)
        return;
    h = (struct head *)(void *)((char *)p - ALIGN);
    if (h->magic != MAGIC) { /* not from host_alloc, or freed before: leave it rather than harm the heap */
        ctx->host->fail(ctx, CODE_INTERNAL, NULL, NULL, "a kernel frees host memory that it does not own");
        return;
    }
    unlink_block(s, h);
}

uint64_t host_reap(struct host_state *s)
{
    uint64_t left = s->now;

    while (s->blocks)
        unlink_block(s, s->blocks);
    return left;
}

/* ---- failures and words ---- */

PRINTF(5, 6) static int host_fail(struct recon_ctx *ctx, int code, const char *rule, const char *object, const char *fmt, ...)
{
    struct host_state *s = state_of(ctx);
    char text[sizeof(s->err.text)];
    va_list ap;

    if (s->err.code) /* the first is the cause, what follows from it is not */
        return -1;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(s->rule, sizeof(s->rule), "%s", rule ? rule : "");
    snprintf(s->object, sizeof(s->object), "%s", object ? object : "");
    if (object && *object && !strstr(text, object))
        return err_set(&s->err, code, "'%s': %s", object, text);
    return err_set(&s->err, code, "%s", text);
}

static void record(struct host_state *s, enum level level, const char *rule, enum scope scope, const char *object,
                   const char *text)
{
    struct findings list = { 0 };

    if (s->args->events && *rule) {
        findings_add(&list, rule, level, scope, object, "%s", text);
        events_finding(s->args->events, &list.v[0]);
    }
    findings_release(&list);
}

PRINTF(5, 6) static void host_log(struct recon_ctx *ctx, enum recon_log level, const char *rule, const char *object,
                     const char *fmt, ...)
{
    struct host_state *s = state_of(ctx);
    enum level l = level == RECON_WARN ? LEVEL_WARN : LEVEL_NOTE;
    char text[900], line[1200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (s->report)
        s->report->warnings += l == LEVEL_WARN;
    record(s, l, rule ? rule : "", SCOPE_DATA, object ? object : "", text);
    if (!s->args->tell)
        return;
    if (object && *object && !strstr(text, object))
        snprintf(line, sizeof(line), "'%s': %s", object, text);
    else
        snprintf(line, sizeof(line), "%s", text);
    s->args->tell(s->args->arg, l, line);
}

static void host_output(struct recon_ctx *ctx, const char *path)
{
    struct host_state *s = state_of(ctx);
    char *whole = path_join(ctx->out ? ctx->out : "", path);

    if (s->report && !strv_has(&s->report->outputs, whole))
        strv_add(&s->report->outputs, whole);
    free(whole);
}

static int host_cancelled(struct recon_ctx *ctx)
{
    const struct host_state *s = state_of(ctx);

    return cancel_signal || (s->end > 0 && clock_ms() > s->end);
}

const struct recon_host host_services = {
    .alloc = host_alloc, .free = host_free,     .fail = host_fail,
    .log = host_log,     .output = host_output, .cancelled = host_cancelled,
};

void host_begin(struct host_state *s, const struct run_args *args, struct run_report *report)
{
    s->args = args;
    s->report = report;
    s->err = (struct err){ 0 };
    s->rule[0] = s->object[0] = 0;
    s->peak = s->now;
    s->end = args->deadline_ms > 0 ? clock_ms() + args->deadline_ms : 0;
}

int host_failure(struct host_state *s, const char *what, struct err *err)
{
    enum scope scope = s->err.code == CODE_DATA ? SCOPE_DATA : s->err.code == CODE_NODE ? SCOPE_NODE : SCOPE_JOB;

    if (cancel_signal)
        return err_set(err, 128 + cancel_signal, "%s: ended by signal %d", what, (int)cancel_signal);
    if (s->end > 0 && clock_ms() > s->end)
        return err_set(err, CODE_DEADLINE, "%s: not done within its deadline of %.0f ms", what, s->args->deadline_ms);
    if (!s->err.code)
        return err_set(err, CODE_INTERNAL, "%s: failed without a reason; this is a defect of its kernel", what);
    record(s, LEVEL_ERROR, s->rule, scope, s->object, s->err.text);
    return err_set(err, s->err.code, "%s: %s", what, s->err.text);
}
