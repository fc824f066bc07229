/* What is looked at on a node. Each probe is a process of its own that sends findings; all run at once. */
#include "config.h"
#include "check_node.h"
#include "cli_rules.h"
#include "check/check.h"
#include "node/node.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct asked {
    enum node_mode mode;
    const struct node_conf *conf;
    const char *node;
    double left_ms;
};
#define add(out, rule, level, object, ...) findings_add(out, rule, level, SCOPE_NODE, object, __VA_ARGS__)

static void unknown(struct findings *out, const char *object, const char *why)
{
    finding_explain(add(out, "node-unknown", LEVEL_NOTE, object, "%s", why), NULL, "recon's own fault stops no job", NULL);
    out->not_checked++;
}

/* ---- facts, the site's baseline, its pins ---- */

static void baseline(const struct asked *a, const struct facts *f, struct findings *out)
{
    const struct node_conf *c = a->conf;

    if (c->gpus >= 0 && f->gpus_known && (int64_t)f->gpus.n != c->gpus)
        finding_explain(add(out, (int64_t)f->gpus.n < c->gpus ? "gpu-lost" : "gpu-count", LEVEL_ERROR, "gpu",
                            "%zu GPUs answer, this node has %lld", f->gpus.n, (long long)c->gpus),
                        NULL, "a GPU is off the bus or its driver does not see it", "drain, then reset or reboot the node");
    if (c->driver && *c->driver && f->driver.kernel_module && version_cmp(f->driver.kernel_module, c->driver) < 0)
        finding_explain(add(out, "driver-too-old", LEVEL_ERROR, "driver", "driver %s is older than the site's %s",
                            f->driver.kernel_module, c->driver),
                        NULL, "the node missed an update", "update the driver and reboot");
    if (f->driver.kernel_module && f->driver.library && str_eq(f->driver.source, "nvml") &&
        !str_eq(f->driver.kernel_module, f->driver.library))
        finding_explain(add(out, "driver-lib-mismatch", LEVEL_ERROR, "driver",
                            "the kernel module is %s, the driver's library %s", f->driver.kernel_module, f->driver.library),
                        NULL, "the driver was updated without a reboot", "reboot, or reload the kernel module");
    for (size_t i = 0; i < f->unknown.n; i++)
        unknown(out, "facts", f->unknown.v[i]);
}

static void judge_pin(const char *path, const struct facts *f, struct findings *out)
{
    static char *const clean[] = { NULL };
    struct pin pin = { 0 };
    struct resolution r = { 0 };
    struct findings list = { 0 };
    struct strv env = { 0 };
    struct err err = { 0 };

    if (file_trusted(path, NULL, &err) || pin_read(path, &pin, &err)) {
        unknown(out, path, err.text);
        return;
    }
    pin_environment(&pin, clean, &env);
    if (resolve(&pin, f, "", env.v, &r, &err) == 0) {
        struct conf_map levels;
        struct check_case c = { .pin = &pin, .facts = f, .resolution = &r, .levels = &levels };

        cli_levels(NULL, &levels);
        check(&c, NULL, &list);
        conf_map_release(&levels);
        for (size_t i = 0; i < list.n; i++)
            if (list.v[i].level != LEVEL_NOTE) /* what a pin wants is the node's business only as far as a node can mend it */
                finding_explain(findings_add(out, list.v[i].rule, list.v[i].scope == SCOPE_NODE ? list.v[i].level : LEVEL_WARN,
                                             SCOPE_NODE, list.v[i].object, "%s", list.v[i].text),
                                list.v[i].hint, list.v[i].cause, list.v[i].remedy);
        resolution_release(&r);
    } else {
        unknown(out, path, err.text);
    }
    findings_release(&list);
    strv_release(&env);
    pin_release(&pin);
}

static void judge_pins(const char *dir, const struct facts *f, struct findings *out)
{
    struct dirent **list = NULL;
    int n = dir && *dir ? scandir(dir, &list, NULL, alphasort) : -1;

    for (int i = 0; i < n; i++) {
        if (str_ends(list[i]->d_name, ".pin")) {
            char *path = path_join(dir, list[i]->d_name);

            judge_pin(path, f, out);
            free(path);
        }
        free(list[i]);
    }
    free(list);
}

static void publish(const struct asked *a, const struct facts *f, struct findings *out)
{
    char *path = xasprintf("%s/%s.facts", a->conf->facts, a->node);
    struct err err = { 0 };

    if (facts_write(path, f, &err))
        unknown(out, "facts", err.text);
    free(path);
}

static void probe_facts(const struct asked *a, struct findings *out)
{
    struct facts_request q = { .tmpdir = "/tmp", .deadline_ms = a->left_ms * 0.8, .kept = true };
    struct facts f = { 0 };

    facts_probe_for(&q, &f, NULL);
    baseline(a, &f, out);
    judge_pins(a->conf->pins, &f, out);
    if (a->mode == NODE_HEALTH && a->conf->facts && *a->conf->facts)
        publish(a, &f, out);
    facts_release(&f);
}

/* ---- nvidia-smi ---- */

static bool says(const char *text, const char *key, const char *value)
{
    for (const char *p = text; (p = strcasestr(p, key)); p++) {
        const char *v = p + strlen(key);

        v += strspn(v, " \t");
        if (*v == ':' && strncasecmp(v + 1 + strspn(v + 1, " \t"), value, strlen(value)) == 0)
            return true;
    }
    return false;
}

static void read_smi(const char *text, struct findings *out)
{
    if (strcasestr(text, "GPU is lost") || strcasestr(text, "Unable to determine the device handle"))
        finding_explain(add(out, "gpu-lost", LEVEL_ERROR, "nvidia-smi", "nvidia-smi reports a GPU that is lost"), NULL,
                        "it fell off the bus", "drain, then reset or reboot the node");
    if (says(text, "Remapping Failure Occurred", "Yes"))
        finding_explain(add(out, "gpu-error-state", LEVEL_ERROR, "nvidia-smi", "a row of GPU memory could not be remapped"),
                        NULL, "no spare rows are left", "drain; the vendor's field diagnostic decides on replacement");
    else if (says(text, "Pending", "Yes"))
        finding_explain(add(out, "gpu-remap-pending", LEVEL_WARN, "nvidia-smi",
                            "a row remap or page retirement of GPU memory is pending"),
                        NULL, "it takes effect with the next reset", "reset the GPU when the node is idle: nvidia-smi -r");
}

static void probe_smi(const struct asked *a, struct findings *out)
{
    const struct node_conf *c = a->conf;
    static char *const env[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)(uintptr_t) "LC_ALL=C",
                                 NULL };
    struct child child = { .env = env, .deadline_ms = a->left_ms * 0.8 };
    struct strv argv = { 0 };
    struct err err = { 0 };

    if (file_trusted(c->nvidia_smi, NULL, &err)) {
        unknown(out, "nvidia-smi", err.text);
        return;
    }
    strv_add(&argv, c->nvidia_smi);
    for (size_t i = 0; i < c->smi_args.n; i++)
        strv_add(&argv, c->smi_args.v[i]);
    child.argv = (const char *const *)argv.v;
    if (child_run(&child, &err) && err.code == CODE_DEADLINE)
        finding_explain(add(out, "gpu-hung", LEVEL_ERROR, "nvidia-smi", "%s; it was killed", err.text), NULL,
                        "the driver does not answer", "drain, then reset or reboot the node");
    else if (err.code)
        unknown(out, "nvidia-smi", err.text);
    if (child.out.len)
        read_smi(child.out.s, out);
    if (child.errout.len)
        read_smi(child.errout.s, out);
    str_release(&child.out);
    str_release(&child.errout);
    strv_release(&argv);
}

/* ---- the kernel's log ---- */

/* Source: NVIDIA, XID Errors (docs.nvidia.com/deploy/xid-errors): those after which the GPU or the node wants a reset. */
static const struct xid { int number; const char *rule; enum level level; const char *words; } xids[] = {
    { 48, "xid-fatal", LEVEL_ERROR, "double bit ECC error" },
    { 62, "xid-fatal", LEVEL_ERROR, "internal micro-controller halt" },
    { 64, "xid-fatal", LEVEL_ERROR, "row remapping failure" },
    { 74, "xid-fatal", LEVEL_ERROR, "NVLink error" },
    { 79, "gpu-lost", LEVEL_ERROR, "GPU has fallen off the bus" },
    { 95, "xid-fatal", LEVEL_ERROR, "uncontained ECC error" },
    { 119, "xid-fatal", LEVEL_ERROR, "GSP does not answer" },
    { 120, "xid-fatal", LEVEL_ERROR, "GSP error" },
    { 63, "gpu-remap-pending", LEVEL_WARN, "row remapping recorded" },
};

/* Seconds since boot at which a line was written: "[ 4242.000001] " or "6,123,4242000001,-;"; -1: it does not say. */
static double line_time(const char *line)
{
    double v;

    if (*line == '[' && sscanf(line, "[%lf]", &v) == 1)
        return v;
    if (isdigit((unsigned char)*line) && sscanf(line, "%*d,%*d,%lf,", &v) == 1)
        return v / 1e6;
    return -1;
}

static void read_line(const struct asked *a, const char *line, struct findings *out)
{
    const char *p = strstr(line, "NVRM: Xid (PCI:");
    char pci[32] = "";
    struct timespec now;
    int number;
    double at = line_time(line);

    if (!p || sscanf(p, "NVRM: Xid (PCI:%31[^)]): %d", pci, &number) != 2)
        return;
    clock_gettime(CLOCK_BOOTTIME, &now);
    if (a->conf->xid_age > 0 && at >= 0 && at + (double)a->conf->xid_age < (double)now.tv_sec)
        return;
    for (size_t i = 0; i < COUNT(xids); i++) {
        bool told = false;

        for (size_t k = 0; k < out->n; k++)
            told = told || (str_eq(out->v[k].object, pci) && str_eq(out->v[k].rule, xids[i].rule));
        if (xids[i].number == number && !told)
            finding_explain(add(out, xids[i].rule, xids[i].level, pci, "Xid %d on GPU %s: %s", number, pci, xids[i].words),
                            NULL, "the kernel's log has it", xids[i].level == LEVEL_ERROR
                                                                 ? "drain, then reset the GPU or reboot the node"
                                                                 : "reset the GPU when the node is idle");
    }
}

static void probe_log(const struct asked *a, struct findings *out)
{
    int fd = open(a->conf->kernel_log, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char block[8192];
    struct str t = { 0 };
    ssize_t n;

    if (fd < 0) {
        snprintf(block, sizeof(block), "cannot read '%s': %s", a->conf->kernel_log, strerror(errno));
        unknown(out, "kernel-log", block);
        return;
    }
    /* /dev/kmsg gives one record a read, EPIPE where records were overwritten */
    while (((n = read(fd, block, sizeof(block))) > 0 || (n < 0 && (errno == EPIPE || errno == EINTR))) && t.len < 16u << 20)
        str_addn(&t, block, n > 0 ? (size_t)n : 0);
    close(fd);
    for (char *p = t.len ? t.s : block, *end; t.len && *p; p = end + (*end == '\n'), end = p) {
        char *line;

        end = p + strcspn(p, "\n");
        line = xstrndup(p, (size_t)(end - p));
        read_line(a, line, out);
        free(line);
    }
    str_release(&t);
}

/* ---- mounts ---- */

/* A bind mount has its parent's device, so the kernel is asked; one before 5.8 does not tell. */
static bool is_mounted(const char *path, const struct stat *here, const struct stat *above)
{
    struct statx x;

    if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x) == 0 && (x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return here->st_dev != above->st_dev;
}

static void probe_mounts(const struct asked *a, struct findings *out)
{
    for (size_t i = 0; i < a->conf->mounts.n; i++) {
        const char *path = a->conf->mounts.v[i];
        char *up = path_join(path, "..");
        struct stat here, above;

        if (stat(path, &here) || stat(up, &above))
            finding_explain(add(out, "path-not-answering", LEVEL_ERROR, path, "cannot look at '%s': %s", path, strerror(errno)),
                            NULL, "the file system is not mounted or its server is away", "mount it, or mend its server");
        else if (!is_mounted(path, &here, &above))
            finding_explain(add(out, "path-not-answering", LEVEL_ERROR, path, "nothing is mounted at '%s'", path), NULL,
                            "the mount failed or was lost", "mount it");
        free(up);
    }
}

/* ---- all at once ---- */

struct probe {
    const char *name, *rule; /* what its silence means */
    enum level level;
    void (*run)(const struct asked *, struct findings *);
    bool on;
    pid_t pid;
    int fd;
    struct str text;
};

/* A field each: level, scope, six texts, separated by unit separators, ended by a record separator. */
static void send_findings(int fd, const struct findings *l)
{
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++) {
        const struct finding *f = &l->v[i];
        const char *x[6] = { f->rule, f->object, f->text, f->cause, f->remedy, f->hint };

        str_addf(&t, "%d\x1f%d", (int)f->level, (int)f->scope);
        for (size_t k = 0; k < COUNT(x); k++)
            str_addf(&t, "\x1f%s", x[k] ? x[k] : "");
        str_add(&t, "\x1e");
    }
    str_add(&t, "\x04");
    for (size_t done = 0; done < t.len;) {
        ssize_t n = write(fd, t.s + done, t.len - done);

        if (n <= 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    str_release(&t);
}

static const char *or_null(const char *s)
{
    return *s ? s : NULL;
}

static void take_findings(const struct probe *p, struct findings *out)
{
    struct strv records = { 0 };

    if (!p->text.len || p->text.s[p->text.len - 1] != '\x04') {
        finding_explain(add(out, p->rule, p->level, p->name, "'%s' gave no answer within the deadline", p->name), NULL,
                        p->level == LEVEL_ERROR ? "what it looks at hangs" : "recon's own fault stops no job", NULL);
        out->not_checked += p->level == LEVEL_NOTE;
        return;
    }
    strv_split(&records, p->text.s, "\x1e");
    for (size_t i = 0; i + 1 < records.n; i++) {
        struct strv f = { 0 };

        strv_split(&f, records.v[i], "\x1f");
        if (f.n == 8)
            finding_explain(findings_add(out, f.v[2], (enum level)atoi(f.v[0]), (enum scope)atoi(f.v[1]), f.v[3], "%s", f.v[4]),
                            or_null(f.v[7]), or_null(f.v[5]), or_null(f.v[6]));
        if (f.n == 8 && str_eq(f.v[2], "node-unknown"))
            out->not_checked++;
        strv_release(&f);
    }
    strv_release(&records);
}

static void start_probe(struct probe *p, const struct asked *a)
{
    struct findings list = { 0 };
    int ends[2];

    p->fd = -1;
    if (pipe2(ends, O_CLOEXEC))
        return;
    p->pid = fork();
    if (p->pid == 0) {
        setpgid(0, 0);
        p->run(a, &list);
        send_findings(ends[1], &list);
        _exit(0);
    }
    close(ends[1]);
    p->fd = ends[0];
}

/* Reads all until each ended or the deadline is over. */
static void collect(struct probe *v, size_t n, double end)
{
    for (;;) {
        struct pollfd fds[8];
        double left = end - clock_ms();
        size_t open = 0;

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){ .fd = v[i].fd, .events = POLLIN };
            open += v[i].fd >= 0;
        }
        if (!open || left <= 0 || poll(fds, (nfds_t)n, (int)left + 1) < 0)
            return;
        for (size_t i = 0; i < n; i++) {
            char block[4096];
            ssize_t got = fds[i].revents ? read(v[i].fd, block, sizeof(block)) : -1;

            if (got > 0)
                str_addn(&v[i].text, block, (size_t)got);
            if (fds[i].revents && got <= 0) {
                close(v[i].fd);
                v[i].fd = -1;
            }
        }
    }
}

void node_probe(enum node_mode mode, const struct node_conf *c, const char *node, struct findings *ret)
{
    struct asked a = { mode, c, node, c->deadline * 1000 };
    bool health = mode == NODE_HEALTH;
    struct probe v[] = {
        { .name = "facts", .rule = "node-unknown", .level = LEVEL_NOTE, .run = probe_facts, .on = true },
        { .name = "nvidia-smi", .rule = "gpu-hung", .level = LEVEL_ERROR, .run = probe_smi,
          .on = health && c->nvidia_smi && *c->nvidia_smi },
        { .name = "kernel-log", .rule = "node-unknown", .level = LEVEL_NOTE, .run = probe_log,
          .on = health && c->kernel_log && *c->kernel_log },
        { .name = "mounts", .rule = "path-not-answering", .level = LEVEL_ERROR, .run = probe_mounts, .on = c->mounts.n > 0 },
    };

    for (size_t i = 0; i < COUNT(v); i++) {
        v[i].fd = -1;
        if (v[i].on)
            start_probe(&v[i], &a);
    }
    collect(v, COUNT(v), clock_ms() + a.left_ms);
    for (size_t i = 0; i < COUNT(v); i++) {
        if (!v[i].on)
            continue;
        if (v[i].fd >= 0) { /* it runs still, or sleeps in the kernel */
            kill(-v[i].pid, SIGKILL);
            kill(v[i].pid, SIGKILL);
            close(v[i].fd);
        }
        for (int k = 0; v[i].pid > 0 && waitpid(v[i].pid, NULL, WNOHANG) == 0 && k < 50; k++)
            usleep(2000);
        take_findings(&v[i], ret);
        str_release(&v[i].text);
    }
}
