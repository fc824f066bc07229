/* libslurm: started, its configuration, its errors in our words, its own words kept from stderr. */
#include "config.h"
#include "sched/slurm_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- libslurm writes to stderr: kept for the error's text -------------------------------------------- */

void hush_begin(struct hush *h)
{
    fflush(stderr);
    h->kept = memfd_create("recon-slurm", MFD_CLOEXEC);
    h->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (h->kept >= 0 && h->saved >= 0)
        dup2(h->kept, STDERR_FILENO);
}

char *hush_end(struct hush *h)
{
    struct str t = { 0 };
    char *last, *mark;

    fflush(stderr);
    if (h->kept >= 0 && h->saved >= 0) {
        dup2(h->saved, STDERR_FILENO);
        lseek(h->kept, 0, SEEK_SET);
        file_read_fd(h->kept, "libslurm", 65536, &t, NULL);
    }
    if (h->kept >= 0)
        close(h->kept);
    if (h->saved >= 0)
        close(h->saved);
    while (t.len && strchr(" \n\r", t.s[t.len - 1]))
        t.s[--t.len] = 0;
    last = t.len && strrchr(t.s, '\n') ? strrchr(t.s, '\n') + 1 : t.len ? t.s : (char *)(uintptr_t)"";
    mark = strstr(last, ": fatal: ") ? strstr(last, ": fatal: ") : strstr(last, ": error: ");
    last = xstrdup(mark ? mark + 9 : last);
    str_release(&t);
    return last;
}

/* ---- errors ---- */

int slurm_failed(const char *what, struct err *err)
{
    int e = slurm_get_errno();
    const char *text = slurm_strerror(e);
    char *where = sched_endpoint(environ);
    int code = CODE_NOEXEC; /* a protocol or a plugin that is not this library's */

    if (e == ECONNRESET || e == SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT || e == SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT ||
        e == SLURM_COMMUNICATIONS_RECEIVE_ERROR || e == SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR)
        code = CODE_DEADLINE; /* it was sent, and no answer came: it may have been taken */
    else if (e == EAGAIN || e == ECONNREFUSED || e == ETIMEDOUT || e == SLURM_COMMUNICATIONS_CONNECTION_ERROR ||
        e == SLURM_COMMUNICATIONS_SEND_ERROR ||
        (e >= SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR && e < 1900) || e == ESLURM_IN_STANDBY_MODE ||
        e == ESLURM_IN_STANDBY_USE_BACKUP || e == ESLURM_ERROR_ON_DESC_TO_RECORD_COPY || e == ESLURM_NODES_BUSY)
        code = CODE_UNAVAILABLE;
    else if (e == ESLURM_ACCESS_DENIED || e == ESLURM_USER_ID_MISSING)
        code = CODE_PERM;
    else if (e >= ESLURM_INVALID_PARTITION_NAME && e < 3000)
        code = CODE_USAGE;
    if (code == CODE_USAGE || code == CODE_PERM)
        err_set(err, code, "%s: Slurm says: %s (%d)", what, text, e);
    else
        err_set(err, code, "%s: the controller does not answer (%s): %s (%d)", what, where, text, e);
    free(where);
    return -1;
}

/* libslurm ends the process when it finds no configuration, so a child tries first. */
static int try_init(struct err *err)
{
    struct hush h;
    char *said, *where;
    int status = 0;
    pid_t pid;

    hush_begin(&h);
    pid = fork();
    if (pid == 0) {
        slurm_init(NULL);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    said = hush_end(&h);
    if (pid > 0 && status == 0) {
        free(said);
        return 0;
    }
    where = sched_endpoint(environ);
    err_set(err, CODE_NOEXEC, "libslurm finds no cluster (controller %s): %s", where,
            *said ? said : "it said nothing");
    free(where);
    free(said);
    return -1;
}

/* libslurm's own plugins expect its symbols in the global scope; this module is loaded into its own. */
static void make_global(void)
{
    Dl_info info;

    if (dladdr((void *)(uintptr_t)slurm_init, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

int slurm_start(struct err *err)
{
    static bool ready;

    if (ready)
        return 0;
    make_global();
    if (try_init(err))
        return -1;
    slurm_init(NULL);
    setenv("SLURM_BITSTR_LEN", "0", 0); /* lists of slots whole, not cut at 64 characters */
    ready = true;
    return 0;
}

int slurm_config(const slurm_conf_t **ret, struct err *err)
{
    static slurm_conf_t *kept;
    struct hush h;
    int rc;

    if (slurm_start(err))
        return -1;
    hush_begin(&h);
    rc = kept ? 0 : slurm_load_ctl_conf(0, &kept);
    free(hush_end(&h));
    *ret = kept;
    return rc ? slurm_failed("cannot ask for the configuration", err) : 0;
}
