#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Source of the drivers: CUDA release notes, "CUDA Toolkit and corresponding driver versions" and "CUDA minor version
 * compatibility". PTX ISA: PTX manual, release history. GCC: host_config.h of each toolkit (crt/host_config.h),
 * the least one: installation guide, "Host compiler support policy". */
static const struct compat_toolkit toolkits[] = {
    { "9.0", "384.81", "6.0", 6, 4 }, { "9.1", "390.46", "6.1", 6, 4 }, { "9.2", "396.26", "6.2", 7, 4 },
    { "10.0", "410.48", "6.3", 7, 4 }, { "10.1", "418.39", "6.4", 8, 4 }, { "10.2", "440.33", "6.5", 8, 4 },
    { "11.0", "450.36.06", "7.0", 9, 5 }, { "11.1", "455.23", "7.1", 10, 5 }, { "11.2", "460.27.03", "7.2", 10, 5 },
    { "11.3", "465.19.01", "7.3", 10, 5 }, { "11.4", "470.42.01", "7.4", 11, 5 }, { "11.5", "495.29.05", "7.5", 11, 5 },
    { "11.6", "510.39.01", "7.6", 11, 5 }, { "11.7", "515.43.04", "7.7", 11, 5 }, { "11.8", "520.61.05", "7.8", 11, 5 },
    { "12.0", "525.60.13", "8.0", 12, 6 }, { "12.1", "530.30.02", "8.1", 12, 6 }, { "12.2", "535.54.03", "8.2", 12, 6 },
    { "12.3", "545.23.06", "8.3", 12, 6 }, { "12.4", "550.54.14", "8.4", 13, 6 }, { "12.5", "555.42.02", "8.5", 13, 6 },
    { "12.6", "560.28.03", "8.5", 13, 6 }, { "12.7", NULL, "8.6", 13, 6 }, { "12.8", "570.26", "8.7", 14, 6 },
    { "12.9", "575.51.03", "8.8", 14, 6 }, { "13.0", "580.65.06", "9.0", 15, 6 }, { "13.1", "590.44.01", "9.1", 15, 6 },
    { "13.2", "595.45.04", "9.2", 15, 6 }, { "13.3", "610.43.02", "9.3", 15, 6 }, /* 13.3: from secondary sources */
};

/* Minor-version compatibility: the least driver of a whole major. Below 11 there is none; 11.0 came before it. */
static const struct {
    int major;
    const char *driver;
} minor_minimum[] = { { 11, "450.80.02" }, { 12, "525.60.13" }, { 13, "580.65.06" } };

/* Linux driver branch and the CUDA version that it implements; branches between two rows are of the lower one. */
static const struct {
    int branch;
    const char *cuda;
} branches[] = {
    { 384, "9.0" },  { 390, "9.1" },  { 396, "9.2" },  { 410, "10.0" }, { 418, "10.1" }, { 440, "10.2" },
    { 450, "11.0" }, { 455, "11.1" }, { 460, "11.2" }, { 465, "11.3" }, { 470, "11.4" }, { 495, "11.5" },
    { 510, "11.6" }, { 515, "11.7" }, { 520, "11.8" }, { 525, "12.0" }, { 530, "12.1" }, { 535, "12.2" },
    { 545, "12.3" }, { 550, "12.4" }, { 555, "12.5" }, { 560, "12.6" }, { 565, "12.7" }, { 570, "12.8" },
    { 575, "12.9" }, { 580, "13.0" }, { 590, "13.1" }, { 595, "13.2" }, { 610, "13.3" },
};

/* Integrated (Tegra) GPUs: code of the desktop does not run there, nor theirs elsewhere (CUDA programming guide,
 * "Binary compatibility is not supported between desktop and Tegra"). */
static const int tegra[] = { 32, 53, 62, 72, 87, 101, 110 };

/* libstdc++ version nodes and the GCC that brought them (libstdc++ manual, ABI policy). */
static const struct {
    const char *node;
    int gcc;
} libstdcxx[] = {
    { "GLIBCXX_3.4.21", 5 },  { "GLIBCXX_3.4.22", 6 },  { "GLIBCXX_3.4.24", 7 },  { "GLIBCXX_3.4.25", 8 },
    { "GLIBCXX_3.4.28", 9 },  { "GLIBCXX_3.4.29", 11 }, { "GLIBCXX_3.4.30", 12 }, { "GLIBCXX_3.4.32", 13 },
    { "GLIBCXX_3.4.33", 14 }, { "GLIBCXX_3.4.34", 15 }, { "CXXABI_1.3.9", 5 },    { "CXXABI_1.3.10", 6 },
    { "CXXABI_1.3.11", 7 },   { "CXXABI_1.3.12", 9 },   { "CXXABI_1.3.13", 11 },  { "CXXABI_1.3.14", 13 },
    { "CXXABI_1.3.15", 14 },
};

/* The first toolkit that compiles for an architecture and the first that no longer does. CUDA release notes; `nvcc
 * --list-gpu-code` of 13.0. Suffix a since 12.0 (9.0) or with its architecture, f since 12.9. */
static const struct {
    int arch;
    const char *first, *dropped;
} arch_toolkits[] = {
    { 30, "5.0", "11.0" },  { 32, "6.0", "11.0" },  { 35, "5.0", "12.0" },  { 37, "6.5", "12.0" }, { 50, "6.0", "13.0" },
    { 52, "6.5", "13.0" },  { 53, "7.0", "13.0" },  { 60, "8.0", "13.0" },  { 61, "8.0", "13.0" }, { 62, "8.0", "13.0" },
    { 70, "9.0", "13.0" },  { 72, "9.2", "13.0" },  { 75, "10.0", NULL },   { 80, "11.0", NULL },  { 86, "11.1", NULL },
    { 87, "11.4", NULL },   { 88, "13.0", NULL },   { 89, "11.8", NULL },   { 90, "11.8", NULL },  { 100, "12.8", NULL },
    { 101, "12.8", "13.0" }, { 103, "12.9", NULL }, { 110, "13.0", NULL },  { 120, "12.8", NULL }, { 121, "12.9", NULL },
};

int compat_arch_toolkits(int arch, char suffix, const char **ret_first, const char **ret_dropped)
{
    const char *least = suffix == 'f' ? "12.9" : suffix == 'a' ? "12.0" : "0";

    for (size_t i = 0; i < COUNT(arch_toolkits); i++)
        if (arch_toolkits[i].arch == arch) {
            *ret_first = version_cmp(least, arch_toolkits[i].first) > 0 ? least : arch_toolkits[i].first;
            *ret_dropped = arch_toolkits[i].dropped;
            return 0;
        }
    return -1;
}

/* NVIDIA's page "CUDA GPU compute capability", some of each. */
static const struct {
    int capability;
    const char *products;
} products[] = {
    { 37, "K80" }, { 60, "P100" }, { 61, "P40, GTX 10" }, { 70, "V100" }, { 75, "T4, RTX 20" }, { 80, "A100, A30" },
    { 86, "A40, A10, RTX 30" }, { 87, "Jetson Orin" }, { 89, "L40S, L4, RTX 40" }, { 90, "H100, H200" },
    { 100, "B200" }, { 103, "B300" }, { 110, "Jetson Thor" }, { 120, "RTX PRO 6000, RTX 50" }, { 121, "GB10" },
};

int compat_known_capability(size_t i)
{
    return i < COUNT(arch_toolkits) ? arch_toolkits[i].arch : 0;
}

const char *compat_products(int capability)
{
    for (size_t i = 0; i < COUNT(products); i++)
        if (products[i].capability == capability)
            return products[i].products;
    return NULL;
}

int compat_arch(const char *text, int *ret_arch, char *ret_suffix)
{
    static const char *const prefixes[] = { "sm_", "compute_", "lto_" };
    const char *s = text;
    char *end;
    long n;

    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (str_starts(s, prefixes[i]))
            s += strlen(prefixes[i]);
    n = strtol(s, &end, 10);
    if (end == s || n <= 0 || n > 999)
        return -1;
    if (*end == '.' && end[1] >= '0' && end[1] <= '9') {
        n = n * 10 + (end[1] - '0');
        end += 2;
    }
    *ret_suffix = *end == 'a' || *end == 'f' ? *end++ : 0;
    *ret_arch = (int)n;
    return *end && !str_eq(end, "+PTX") && !str_eq(end, "-real") && !str_eq(end, "-virtual") ? -1 : 0;
}

const struct compat_toolkit *compat_toolkit(const char *cuda)
{
    for (size_t i = 0; cuda && i < COUNT(toolkits); i++)
        if (version_cmp(toolkits[i].cuda, cuda) == 0)
            return &toolkits[i];
    return NULL;
}

const char *compat_driver_minimum(const char *cuda)
{
    const struct compat_toolkit *t = compat_toolkit(cuda);
    int major = cuda ? atoi(cuda) : 0;

    if (cuda && version_cmp(cuda, "11.0") != 0)
        for (size_t i = 0; i < COUNT(minor_minimum); i++)
            if (minor_minimum[i].major == major)
                return minor_minimum[i].driver;
    return t ? t->driver : NULL;
}

const char *compat_cuda_of_driver(const char *driver)
{
    int branch = driver ? atoi(driver) : 0;
    const char *cuda = NULL;

    if (branch > branches[COUNT(branches) - 1].branch)
        return NULL;
    for (size_t i = 0; i < COUNT(branches) && branches[i].branch <= branch; i++)
        cuda = branches[i].cuda;
    return cuda;
}

const char *compat_ptx_isa_of_cuda(const char *cuda)
{
    const struct compat_toolkit *t = compat_toolkit(cuda);

    return t ? t->ptx_isa : NULL;
}

int compat_gcc_of_node(const char *node)
{
    size_t family = strcspn(node, "_");

    for (size_t i = 0; i < COUNT(libstdcxx); i++)
        if (strncmp(node, libstdcxx[i].node, family + 1) == 0 &&
            version_cmp(libstdcxx[i].node + family + 1, node + family + 1) >= 0)
            return libstdcxx[i].gcc;
    return 0;
}

int compat_capability(const char *capability)
{
    char *end;
    long major = capability ? strtol(capability, &end, 10) : 0;

    if (major <= 0 || major > 999 || *end != '.' || end[1] < '0' || end[1] > '9' || end[2])
        return 0;
    return (int)major * 10 + (end[1] - '0');
}

static bool is_tegra(int arch)
{
    for (size_t i = 0; i < COUNT(tegra); i++)
        if (tegra[i] == arch)
            return true;
    return false;
}

/* Same major and a minor at least as high: the rule of SASS, and of the families (suffix f) of CUDA 12.9 and later. */
static bool same_major(int arch, int device)
{
    return arch / 10 == device / 10 && arch % 10 <= device % 10;
}

/* Rules: CUDA programming guide, "Binary compatibility", "PTX compatibility", "Family-specific targets" (table 28). */
int compat_image_runs(const struct gpu_image *image, const char *capability, const char *driver_isa)
{
    int device = compat_capability(capability), arch = image->arch;
    char isa[32];

    if (!device)
        return 0;
    if (image->suffix == 'a' && arch != device)
        return 0;
    if (image->suffix == 'f' && !same_major(arch, device))
        return 0;
    if (image->kind == IMAGE_SASS) {
        if (arch == device)
            return 1;
        return !is_tegra(arch) && !is_tegra(device) && same_major(arch, device) ? 1 : 0;
    }
    if (image->kind != IMAGE_PTX || arch > device)
        return 0;
    snprintf(isa, sizeof(isa), "%u.%u", image->major, image->minor);
    return driver_isa && version_cmp(isa, driver_isa) > 0 ? 0 : 2;
}
