#include "config.h"
#include "kernels/plan.h"
#include "base/base.h"
#include "data/data.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t meminfo_available(void)
{
    struct str t = { 0 };
    uint64_t kib = UINT64_MAX >> 10;
    const char *p;

    if (file_read("/proc/meminfo", 65536, &t, NULL) == 0 && (p = strstr(t.s, "MemAvailable:")))
        kib = strtoull(p + 13, NULL, 10);
    str_release(&t);
    return kib << 10;
}

static bool read_u64(const char *dir, const char *name, uint64_t *ret)
{
    char *path = path_join(dir, name), *end;
    struct str t = { 0 };
    bool ok = file_read(path, 4096, &t, NULL) == 0 && t.len && t.s[0] >= '0' && t.s[0] <= '9';

    if (ok)
        *ret = strtoull(t.s, &end, 10);
    str_release(&t);
    free(path);
    return ok;
}

/* least of limit - usage over the group of this process and its parents; cgroup v2, and v1's memory
 * controller */
static uint64_t cgroup_left(void)
{
    uint64_t least = UINT64_MAX, limit, used;
    struct str t = { 0 };
    char *line, *save = NULL;

    if (file_read("/proc/self/cgroup", 65536, &t, NULL))
        t.s = NULL;
    for (line = t.s ? strtok_r(t.s, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
        bool v2 = str_starts(line, "0::"), v1 = strstr(line, ":memory:") != NULL;
        char *dir, *slash;

        if (!v2 && !v1)
            continue;
        dir = xasprintf("/sys/fs/cgroup%s%s", v1 ? "/memory" : "",
                        v2 ? line + 3 : strstr(line, ":memory:") + 8);
        while (strlen(dir) > strlen("/sys/fs/cgroup")) {
            if (read_u64(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &limit) &&
                read_u64(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &used) &&
                limit < UINT64_MAX >> 2) {
                uint64_t left = limit > used ? limit - used : 0;
                least = left < least ? left : least;
            }
            if (!(slash = strrchr(dir, '/')))
                break;
            *slash = 0;
        }
        free(dir);
    }
    str_release(&t);
    return least;
}

/* By how much the address space may still grow (ulimit -v). */
static uint64_t space_left(void)
{
    struct rlimit limit;
    struct str t = { 0 };
    uint64_t used;

    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY || file_read("/proc/self/statm", 4096, &t, NULL))
        return UINT64_MAX;
    used = strtoull(t.s, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    str_release(&t);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t plan_memory_free(void)
{
    uint64_t a = meminfo_available(), b = cgroup_left(), c = space_left();

    a = a < b ? a : b;
    return a < c ? a : c;
}

static void *take(void *ctx, uint64_t bytes)
{
    return ((struct recon_ctx *)ctx)->host->alloc(ctx, bytes);
}

static void give_back(void *ctx, void *p)
{
    ((struct recon_ctx *)ctx)->host->free(ctx, p);
}

struct data_alloc ctx_alloc(struct recon_ctx *ctx)
{
    return (struct data_alloc){ take, give_back, ctx };
}

int plan_fits(uint64_t need, uint64_t free_bytes)
{
    return need <= free_bytes / 10 * 9;
}

int plan_volume_fits(struct recon_ctx *ctx, const uint32_t dim[3], uint64_t need, uint64_t free_bytes,
                     const char *where)
{
    char a[24], b[24];

    if (plan_fits(need, free_bytes))
        return 0;
    return ctx->host->fail(
        ctx, CODE_DATA, "volume-too-big", "volume",
        "%u x %u x %u voxels need %s of %s memory, %s are free: take a larger voxel or smaller bounds",
        dim[0], dim[1], dim[2], human_bytes(need, a), where, human_bytes(free_bytes, b));
}

char *plan_output(struct recon_ctx *ctx, const char *file)
{
    struct strv parts = { 0 };
    bool fine = file[0] && file[0] != '/' && !str_ends(file, "/");

    strv_split(&parts, file, "/");
    fine = fine && !strv_has(&parts, "..") && !strv_has(&parts, ".") && !strv_has(&parts, "");
    strv_release(&parts);
    if (!fine || !ctx->out) {
        ctx->host->fail(ctx, CODE_USAGE, NULL, "file", "file '%s' must be a name below the output folder",
                        file);
        return NULL;
    }
    return path_join(ctx->out, file);
}
