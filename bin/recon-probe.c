/* recon-probe - what this node is, as facts (doc/format-facts.md) on stdout. Started by recon-launch and recon-check with
 * a scrubbed environment: it alone loads hwloc and NVML, by name, so that neither can stop those from reporting, and a node
 * without them still gives its facts. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include "cli.h"
#include "probe.h"

enum { KEY_NO_HWLOC = 256, KEY_CACHE };

static const struct argp_option options[] = {
    { "deadline", 'd', "MS", 0, "Give up on a driver or a file system after MS milliseconds (2000)", 0 },
    { "tmpdir", 't', "DIR", 0, "Measure the free space of DIR instead of /tmp", 0 },
    { "toolkit", 'k', "DIR", 0, "Look for CUDA toolkits at DIR and beside it, too; may be repeated", 0 },
    { "profiles", 'p', "DIR", 0, "Take the vendor profiles of DIR", 0 },
    { "nvml", 'n', "PATH", 0, "Load NVML from PATH", 0 },
    { "cache", KEY_CACHE, "DIR", OPTION_ARG_OPTIONAL,
      "Take what a boot does not change from the last probe of this boot, kept in DIR (/run/recon, /dev/shm/recon-UID)", 0 },
    { "no-hwloc", KEY_NO_HWLOC, NULL, 0, "Count processors by sysfs alone, as where there is no hwloc", 0 },
    { 0 },
};

static error_t option(int key, char *arg, struct argp_state *state)
{
    struct probe *q = state->input;

    switch (key) {
    case 'd': return str_to_double(arg, &q->deadline_ms) || q->deadline_ms <= 0 ? EINVAL : 0;
    case 't': q->tmpdir = arg; return 0;
    case 'k': strv_add(&q->toolkits, arg); return 0;
    case 'p': q->profiles = arg; return 0;
    case 'n': q->nvml = arg; return 0;
    case KEY_CACHE: q->cache = arg ? arg : ""; return 0;
    case KEY_NO_HWLOC: q->no_hwloc = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = { options, option, NULL, "Print the facts of this node.", NULL, NULL, NULL };

int main(int argc, char **argv)
{
    struct part parts[] = {
        { "nvidia", probe_nvidia, true, -1, -1, 0 },
        { "amd", probe_amd, true, -1, -1, 0 },
        { "profiles", probe_profiles, true, -1, -1, 0 },
        { "places", probe_places, false, -1, -1, 0 },
        { "tmpdir", probe_tmpdir, false, -1, -1, 0 },
    };
    struct probe q = { .deadline_ms = 2000 };
    struct str text = { 0 };
    struct facts f;
    int rest, status = cli_parse(&argp, argc, argv, &rest, &q);

    if (status)
        return cli_end(status);
    if (rest != argc)
        return cli_error(CODE_USAGE, "takes no arguments; see --help");
    facts_minimal(&f);
    parts_start(parts, COUNT(parts), &q);
    if (!cache_read(&q, &f)) {
        probe_os(&q, &f);
        probe_cpu(&q, &f);
        probe_loader(&q, &f);
        probe_libraries(&q, &f);
        cache_write(&q, &f);
    }
    probe_limits(&q, &f);
    parts_collect(parts, COUNT(parts), &q, &f);
    facts_text(&f, &text);
    fwrite(text.s, 1, text.len, stdout);
    str_release(&text);
    facts_release(&f);
    strv_release(&q.toolkits);
    return cli_end(0);
}
