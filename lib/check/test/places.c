/* Rules about the environment, the node and its places: each fires with its words, and a healthy neighbour is
 * silent. */
#include "made.h"

/* One variable of the environment, one fact, one library, and what comes of them. fires NULL: silence. */
static const struct {
    const char *what;
    const char *env[4];     /* of the program and as received */
    const char *facts[4];   /* assumed */
    const char *lib, *path; /* a library that the program needs, found by LD_LIBRARY_PATH */
    const char *soname;     /* its own; NULL: the name that it is asked by */
    const char *fires;
    enum level level;
    const char *text, *remedy;
} rows[] = {
    { "an empty element",
      { "LD_LIBRARY_PATH=/opt/none:" },
      { 0 },
      "libgeo.so.1",
      "/data/libgeo.so.1",
      NULL,
      "ldpath-cwd",
      LEVEL_WARN,
      "from there comes '/data/libgeo.so.1'",
      "export LD_LIBRARY_PATH='/opt/none'" },
    { "set and empty is no element", { "LD_LIBRARY_PATH=" }, { 0 }, NULL, NULL, NULL, NULL, 0, NULL, NULL },
    { "absolute folders",
      { "LD_LIBRARY_PATH=/a:/b;/c/$LIB:$ORIGIN/x" },
      { 0 },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a dot",
      { "LD_LIBRARY_PATH=.:/a" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "ldpath-cwd",
      LEVEL_WARN,
      "working directory",
      "export LD_LIBRARY_PATH='/a'" },
    { "a home",
      { "LD_LIBRARY_PATH=~/lib" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "ldpath-odd-element",
      LEVEL_WARN,
      "a ~",
      "absolute" },
    { "a variable",
      { "LD_LIBRARY_PATH=/a:$CUDA_HOME/lib64" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "ldpath-odd-element",
      LEVEL_WARN,
      "does not expand",
      "absolute" },
    { "a relative folder",
      { "LD_LIBRARY_PATH=lib:/a" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "ldpath-odd-element",
      LEVEL_WARN,
      "'lib' is relative",
      "absolute" },
    { "another release by a link",
      { 0 },
      { 0 },
      "libcudart.so.11.0",
      "/bad/libcudart.so.11.0",
      "libcudart.so.12",
      "soname-mismatch",
      LEVEL_ERROR,
      "asks for 'libcudart.so.11.0', and this file is 'libcudart.so.12'",
      "rm '/bad" },
    { "a shorter SONAME",
      { 0 },
      { 0 },
      "libsndio.so.7.0",
      "/l/libsndio.so.7.0",
      "libsndio.so.7",
      NULL,
      0,
      NULL,
      NULL },
    { "another name altogether",
      { 0 },
      { 0 },
      "libblas.so.3",
      "/l/libblas.so.3",
      "libopenblas.so.0",
      NULL,
      0,
      NULL,
      NULL },
    { "no version in the name", { 0 }, { 0 }, "libx.so", "/l/libx.so", "libx.so.4", NULL, 0, NULL, NULL },
    { "a stub",
      { 0 },
      { 0 },
      "libcuda.so.1",
      "/usr/local/cuda/lib64/stubs/libcuda.so.1",
      NULL,
      "libcuda-stub",
      LEVEL_ERROR,
      "this stub for 'libcuda.so.1'",
      "take '/usr/local/cuda/lib64/stubs' out of LD_LIBRARY_PATH" },
    { "the driver's own", { 0 }, { 0 }, "libcuda.so.1", "/usr/lib/libcuda.so.1", NULL, NULL, 0, NULL, NULL },
    { "another vendor's GPU",
      { 0 },
      { "gpu=gfx90a" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "wrong-vendor",
      LEVEL_ERROR,
      "is nvidia's runtime, and the GPUs of gpu017 are amd's",
      "take a build of '/opt/app/bin/app' for amd" },
    { "its own vendor's GPU",
      { 0 },
      { 0 },
      "libcublas.so.12",
      "/c/libcublas.so.12",
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "no GPU says nothing of a vendor",
      { 0 },
      { "gpu=none" },
      "libcublas.so.12",
      "/c/libcublas.so.12",
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a profile's vendor",
      { 0 },
      { "gpus=( { vendor = \"smr\"; } )", "vendors=( { name = \"smr\"; runtimes = [ \"libsmr_runtime.so\" ]; "
                                          "foreign = [ \"libcudart.so\" ]; } )" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "wrong-vendor",
      LEVEL_ERROR,
      "the GPUs of gpu017 are smr's",
      "for smr" },
    { "one runtime passed off as another",
      { 0 },
      { "gpus=( { vendor = \"smr\"; } )",
        "vendors=( { name = \"smr\"; runtimes = [ \"libsmr_runtime.so\", \"libsmrart.so\" ]; } )" },
      "libsmrart.so.1",
      "/c/libsmrart.so.1",
      "libcudart.so.12",
      "soname-mismatch",
      LEVEL_ERROR,
      "(nvidia's, not smr's)",
      "rm" },
    { "driver and module of different updates",
      { 0 },
      { "driver.library=570.86.10", "driver.kernel_module=570.211.01", "driver.source=nvml" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "driver-lib-mismatch",
      LEVEL_ERROR,
      "release 570.86.10, its kernel module of 570.211.01",
      "--exclude=gpu017" },
    { "and a program without GPU",
      { 0 },
      { "driver.library=570.86.10", "driver.kernel_module=570.211.01", "driver.source=nvml" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "half of conda",
      { "CONDA_PREFIX=/c/envs/gs", "PATH=/usr/bin:/bin" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "env-half-active",
      LEVEL_WARN,
      "bin folder is not in PATH",
      "export PATH='/c/envs/gs'/bin:$PATH" },
    { "conda behind the system",
      { "CONDA_PREFIX=/c/envs/gs", "PATH=/usr/bin:/c/envs/gs/bin" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "env-half-active",
      LEVEL_WARN,
      "stands behind the system's",
      "export PATH" },
    { "conda behind a module",
      { "CONDA_PREFIX=/c/envs/gs", "PATH=/sw/gcc/bin:/c/envs/gs/bin:/usr/bin" },
      { 0 },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "two job ids",
      { "SLURM_JOB_ID=7", "SLURM_JOBID=6" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "slurm-env-stale",
      LEVEL_WARN,
      "is 6, and SLURM_JOB_ID is 7",
      "unset SLURM_JOBID" },
    { "memory by node and by CPU",
      { "SLURM_JOB_ID=7", "SLURM_MEM_PER_NODE=4", "SLURM_MEM_PER_CPU=1" },
      { 0 },
      NULL,
      NULL,
      NULL,
      "slurm-env-stale",
      LEVEL_WARN,
      "set together",
      "unset" },
    { "Slurm's name of a node is not always its host's",
      { "SLURM_JOB_ID=7", "SLURMD_NODENAME=h1" },
      { 0 },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a job as it is",
      { "SLURM_JOB_ID=7", "SLURM_JOBID=7", "SLURMD_NODENAME=gpu017", "SLURM_MEM_PER_NODE=4" },
      { 0 },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "TMPDIR that is not there",
      { 0 },
      { "limits.tmp_dir=/scratch/7", "limits.tmp_problem=it does not exist" },
      NULL,
      NULL,
      NULL,
      "tmpdir-unusable",
      LEVEL_WARN,
      "it does not exist",
      "unset TMPDIR" },
    { "TMPDIR that hangs",
      { "TMPDIR=/nfs/tmp" },
      { "unknown=tmpdir: gave no answer within 2000 ms" },
      NULL,
      NULL,
      NULL,
      "path-not-answering",
      LEVEL_ERROR,
      "gave no answer within 2000 ms",
      "--exclude=gpu017" },
    { "soft limit of 64 KiB",
      { 0 },
      { "limits.memlock=65536", "limits.memlock_hard=-1" },
      NULL,
      NULL,
      NULL,
      "memlock-low",
      LEVEL_WARN,
      "64.0 KiB of memory may be locked; the hard limit is unlimited",
      "ulimit -l unlimited" },
    { "hard limit of 64 KiB",
      { 0 },
      { "limits.memlock=65536", "limits.memlock_hard=65536" },
      NULL,
      NULL,
      NULL,
      "memlock-low",
      LEVEL_WARN,
      "64.0 KiB",
      "LimitMEMLOCK=infinity" },
    { "8 MiB are common", { 0 }, { "limits.memlock=8388608" }, NULL, NULL, NULL, NULL, 0, NULL, NULL },
    { "a container's /dev/shm",
      { 0 },
      { "limits.shm_mib=64" },
      NULL,
      NULL,
      NULL,
      "shm-low",
      LEVEL_WARN,
      "64 MiB are free",
      "--shm-size" },
    { "256 open files",
      { 0 },
      { "limits.open_files=256", "limits.open_files_hard=4096" },
      NULL,
      NULL,
      NULL,
      "open-files-low",
      LEVEL_WARN,
      "256 files",
      "ulimit -n" },
    { "1024 open files are common",
      { 0 },
      { "limits.open_files=1024" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a full disk",
      { 0 },
      { "limits.tmp_mib=12", "limits.tmp_dir=/tmp" },
      NULL,
      NULL,
      NULL,
      "disk-low",
      LEVEL_WARN,
      "12 MiB are free",
      "TMPDIR" },
    { "a device kept to others",
      { 0 },
      { "devices=( { path = \"/dev/nvidia0\"; problem = \"permission denied\"; } )" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "device-no-permission",
      LEVEL_ERROR,
      "permission denied on gpu017",
      "ls -l" },
    { "no uvm",
      { 0 },
      { "devices=( { path = \"/dev/nvidia-uvm\"; problem = \"missing\"; } )" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "uvm-missing",
      LEVEL_ERROR,
      "is not there on gpu017",
      "nvidia-modprobe" },
    { "no uvm, and no GPU wanted",
      { 0 },
      { "devices=( { path = \"/dev/nvidia-uvm\"; problem = \"missing\"; } )" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a MIG instance that is not there",
      { "CUDA_VISIBLE_DEVICES=MIG-377e0049-554c-540b-93c6-000000000001" },
      { "gpu=none" },
      NULL,
      NULL,
      NULL,
      "device-not-visible",
      LEVEL_ERROR,
      "'MIG-377e0049-554c-540b-93c6-000000000001' names no GPU",
      "unset" },
    { "one of an older driver",
      { "CUDA_VISIBLE_DEVICES=MIG-GPU-8932f937-d72c-4106-c12f-000000000002/1/0" },
      { "gpu=none" },
      NULL,
      NULL,
      NULL,
      "device-not-visible",
      LEVEL_ERROR,
      "MIG-GPU-8932f937-d72c-4106-c12f-000000000002/1/0",
      "unset" },
    { "a GPU by its UUID, cut",
      { "CUDA_VISIBLE_DEVICES=GPU-8932f9" },
      { "gpus=( { vendor = \"nvidia\"; uuid = \"GPU-8932f937-d72c\"; compute_capability = \"9.0\"; } )" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a MIG instance",
      { "CUDA_VISIBLE_DEVICES=MIG-377e0049" },
      { "gpus=( { vendor = \"nvidia\"; uuid = \"GPU-1\"; mig = \"MIG-377e0049-554c\"; compute_capability = "
        "\"9.0\"; } )" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "an index beyond",
      { "CUDA_VISIBLE_DEVICES=3" },
      { "gpu=9.0,9.0" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "device-not-visible",
      LEVEL_ERROR,
      "'3' names no GPU of gpu017, which has 2",
      "unset" },
    { "a list that is cut",
      { "CUDA_VISIBLE_DEVICES=0,5,1" },
      { "gpu=9.0,9.0" },
      NULL,
      NULL,
      NULL,
      "visible-devices-cut",
      LEVEL_WARN,
      "entry '5' names no further GPU of gpu017, which has 2: 1 of 3 entries are seen",
      "unset" },
    { "one twice",
      { "CUDA_VISIBLE_DEVICES=1,1" },
      { "gpu=9.0,9.0" },
      NULL,
      NULL,
      NULL,
      "visible-devices-cut",
      LEVEL_WARN,
      "1 of 2 entries",
      "unset" },
    { "all of them",
      { "CUDA_VISIBLE_DEVICES=1,0" },
      { "gpu=9.0,9.0" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "none on purpose",
      { "CUDA_VISIBLE_DEVICES=-1" },
      { 0 },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "four GPUs for one task of one",
      { "SLURM_JOB_ID=1", "SLURM_GPUS_ON_NODE=4", "SLURM_TASKS_PER_NODE=1", "CUDA_VISIBLE_DEVICES=0" },
      { "gpu=9.0,9.0,9.0,9.0" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      "gpu-unused",
      LEVEL_WARN,
      "4 GPUs are allocated, and 1 task of this node uses 1",
      "--gpus-per-task=1" },
    { "four for four",
      { "SLURM_JOB_ID=1", "SLURM_GPUS_ON_NODE=4", "SLURM_TASKS_PER_NODE=4", "CUDA_VISIBLE_DEVICES=0" },
      { "gpu=9.0,9.0,9.0,9.0" },
      "libcudart.so.12",
      "/c/libcudart.so.12",
      NULL,
      NULL,
      0,
      NULL,
      NULL },
    { "a toolkit without compiler",
      { "CUDA_HOME=/usr/local/cuda-12.8", "TORCH_CUDA_ARCH_LIST=9.0" },
      { "toolkit_parts=( { path = \"/usr/local/cuda-12.8\"; headers = true; } )" },
      NULL,
      NULL,
      NULL,
      "toolkit-incomplete",
      LEVEL_WARN,
      "has no nvcc",
      "conda install" },
    { "and nothing to build",
      { "CUDA_HOME=/usr/local/cuda-12.8" },
      { "toolkit_parts=( { path = \"/usr/local/cuda-12.8\"; headers = true; } )" },
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      NULL,
      NULL },
};

static void table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str t = { 0 };
        struct scene s;
        size_t n;

        begin(&s);
        for (size_t k = 0; k < COUNT(rows[i].env) && rows[i].env[k]; k++) {
            strv_add(&s.r.env, rows[i].env[k]);
            strv_add(&s.received, rows[i].env[k]);
        }
        s.c.received = s.received.v;
        for (size_t k = 0; k < COUNT(rows[i].facts) && rows[i].facts[k]; k++) {
            struct err err = { 0 };

            if (facts_assume(&s.f, rows[i].facts[k], &err))
                fail_msg("%s: %s", rows[i].what, err.text);
        }
        if (rows[i].lib) {
            struct library *l = add(&s, rows[i].lib, rows[i].path, WHY_LD_LIBRARY_PATH, 0, NULL, NULL);

            free(l->object.soname);
            l->object.soname = xstrdup(rows[i].soname ? rows[i].soname : rows[i].lib);
        }
        judge(&s);
        n = findings_count(&s.out, LEVEL_WARN) + findings_count(&s.out, LEVEL_ERROR);
        findings_text(&s.out, true, false, &t);
        if (n != (rows[i].fires ? 1u : 0u) || (n && !str_eq(s.out.v[0].rule, rows[i].fires)))
            fail_msg("%s: wanted %s, got:\n%s", rows[i].what, rows[i].fires ? rows[i].fires : "nothing", t.s);
        if (n && (s.out.v[0].level != rows[i].level || !strstr(s.out.v[0].text, rows[i].text) ||
                  !s.out.v[0].cause || !s.out.v[0].remedy || !strstr(s.out.v[0].remedy, rows[i].remedy)))
            fail_msg("%s: wanted '%s' and '%s', got:\n%s", rows[i].what, rows[i].text, rows[i].remedy, t.s);
        str_release(&t);
        strv_release(&s.r.env);
        end(&s);
    }
}

static void libraries(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s); /* a FIFO */
    l = add(&s, "libx.so.1", "/d/libx.so.1", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    l->corrupt = xstrdup("a FIFO");
    says(only(&s, "not-a-regular-file"), "a FIFO, where '/opt/app/bin/app' needs a library");
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    end(&s);

    begin(&s); /* two cuDNN */
    add(&s, "libcudnn.so.8", "/a/libcudnn.so.8", WHY_RUNPATH, 0, NULL, NULL);
    add(&s, "libcudnn_ops.so.8", "/a/libcudnn_ops.so.8", WHY_RUNPATH, 0, NULL, NULL);
    assert_int_equal(judge(&s), 0);
    add(&s, "libcudnn.so.9", "/a/libcudnn.so.9", WHY_RUNPATH, 0, NULL, NULL);
    says(only(&s, "family-mixed"), "'/a/libcudnn.so.8' and '/a/libcudnn.so.9' meet in one process");
    end(&s);

    begin(&s); /* one release from two folders; /usr/lib is /lib */
    add(&s, "libcublas.so.12", "/usr/lib/libcublas.so.12", WHY_CACHE, 0, NULL, NULL);
    l = add(&s, "libcublasLt.so.12", "/lib/libcublasLt.so.12", WHY_CACHE, 0, NULL, NULL);
    assert_int_equal(judge(&s), 0);
    free(l->path);
    l->path = xstrdup("/opt/cuda/lib64/libcublasLt.so.12");
    assert_string_equal(only(&s, "family-mixed")->object, "cuBLAS");
    end(&s);

    begin(&s); /* one SONAME, two files */
    add(&s, "libx.so.1", "/a/libx.so.1", WHY_RUNPATH, 0, NULL, NULL)->object.ino = 1;
    l = add(&s, "libx.so", "/b/libx.so", WHY_RUNPATH, 0, NULL, NULL);
    l->object.ino = 2;
    free(l->object.soname);
    l->object.soname = xstrdup("libx.so.1");
    f = only(&s, "soname-mismatch");
    assert_int_equal(f->level, LEVEL_WARN);
    says(f, "'libx.so.1' is loaded twice, from '/a/libx.so.1' and, asked for as 'libx.so', from here");
    l->object.ino = 1; /* one file by two names */
    assert_int_equal(judge(&s), 0);
    end(&s);

    begin(&s); /* an instruction set */
    l = add(&s, "libfast.so.1", "/a/libfast.so.1", WHY_RUNPATH, 0, NULL, NULL);
    l->object.isa = "x86-64-v3";
    assert_int_equal(judge(&s), 0);
    l->object.isa = "x86-64-v4";
    says(only(&s, "cpu-isa"), "needs x86-64-v4, and the CPU of gpu017 is x86-64-v3");
    end(&s);
}

static void toolkits(void **state)
{
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s);
    l = add(&s, "libown.so.1", "/a/libown.so.1", WHY_RUNPATH, 0, NULL, NULL);
    image(l, (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    l->object.images.toolkit = xstrdup("12.4");
    add(&s, "libcudart.so.12", "/c/libcudart.so.12", WHY_RUNPATH, 0, NULL, NULL);
    l = add(&s, "libcudnn.so.9", "/c/libcudnn.so.9", WHY_RUNPATH, 0, NULL,
            NULL); /* NVIDIA's own may be newer */
    image(l, (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    l->object.images.toolkit = xstrdup("13.0");
    assert_int_equal(judge(&s), 0);
    add(&s, "libcudart.so.11.0", "/b/libcudart.so.11.0", WHY_RUNPATH, 0, NULL, NULL);
    says(only(&s, "toolkit-mismatch"),
         "is of CUDA 11.0, and '/a/libown.so.1' in the same process of CUDA 12.4");
    end(&s);
}

static void drivers(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libcudart.so.12", "/c/libcudart.so.12", WHY_RUNPATH, 0, NULL, NULL);
    strv_add(&s.r.drivers, "/c/compat/libcuda.so.1");
    s.r.driver_file = xstrdup("/c/compat/libcuda.so.570.211.01");
    assert_int_equal(judge(&s), 0);
    free(s.r.driver_file);
    s.r.driver_file = xstrdup("/c/compat/libcuda.so.580.65.06");
    f = only(&s, "libcuda-kernel-mismatch");
    assert_int_equal(f->level, LEVEL_WARN);
    assert_string_equal(f->hint, "compat");
    free(s.r.driver_file);
    s.r.driver_file = xstrdup("/c/compat/libcuda.so.550.54.14");
    says(only(&s, "libcuda-kernel-mismatch"),
         "of release 550.54.14, and the kernel module of gpu017 is of 570.211.01");
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    free(s.r.drivers.v[0]); /* by dlopen: the stub stands first, the real one behind it */
    s.r.drivers.v[0] = xstrdup("/c/lib64/stubs/libcuda.so.1");
    strv_add(&s.r.drivers, "/drv/libcuda.so.1");
    free(s.r.driver_file);
    s.r.driver_file = xstrdup("/c/lib64/stubs/libcuda.so");
    says(only(&s, "libcuda-stub"), "; the driver's own is '/drv/libcuda.so.1'");
    assert_int_equal(findings_status(&s.out), CODE_JOB);
    strv_release(&s.r.drivers);
    free(s.r.driver_file);
    end(&s);
}

static void shadows(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    strv_add(&s.r.shadows, "torch=/home/ada/torch.py");
    f = only(&s, "module-shadowed");
    assert_string_equal(f->object, "/home/ada/torch.py");
    says(f, "`import torch`");
    s.c.elsewhere = true;
    assert_int_equal(judge(&s), 0);
    strv_release(&s.r.shadows);
    end(&s);
}

static void pinned(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s);
    pin_variable(&s, "RECON_X", PIN_SET, "1");
    strv_add(&s.received, "RECON_X=1");
    s.c.received = s.received.v;
    free(s.p.prefix);
    s.p.prefix = xstrdup("/c/envs/gs");
    f = only(&s, "env-prefix-missing");
    says(f, "was active at capture, and no prefix is now");
    assert_int_equal(findings_status(&s.out), CODE_JOB);
    env_set(&s.received, "VIRTUAL_ENV", "/c/envs/gs");
    s.c.received = s.received.v;
    assert_int_equal(judge(&s), 0);

    l = add(&s, "libown.so.1", "/a/libown.so.1", WHY_RUNPATH, 0, NULL, NULL);
    l->object.build_id = xstrdup("b2");
    *VEC_ADD(&s.p.objects) = (struct pin_object){ .role = PIN_LIBRARY,
                                                  .soname = xstrdup("libown.so.1"),
                                                  .path = xstrdup("/a/libown.so.1"),
                                                  .build_id = xstrdup("b1"),
                                                  .size = CONF_UNSET };
    says(only(&s, "lib-changed"), "has build-id b2, the pin has b1");
    assert_int_equal(findings_status(&s.out), 0);
    l->why = WHY_CACHE; /* the system's own */
    assert_int_equal(only(&s, "lib-changed")->level, LEVEL_NOTE);
    s.r.reused = true;
    assert_int_equal(judge(&s), 0);

    pin_variable(&s, "SLURM_NTASKS", PIN_SET, "4");
    env_set(&s.received, "SLURM_NTASKS", "4");
    s.c.received = s.received.v;
    assert_string_equal(only(&s, "slurm-env-stale")->object, "SLURM_NTASKS");
    end(&s);
}

static void builds(void **state)
{
    static const struct {
        const char *cuda, *arch;
        int gcc;
        const char *fires, *text;
    } asked[] = {
        { "11.0", "8.6", 0, "toolkit-too-old",
          "CUDA 11.0 cannot compile for sm_86, which needs CUDA 11.1 or newer" },
        { "11.1", "compute_86", 0, NULL, NULL },
        { "11.1", "9.0", 0, "toolkit-too-old", "needs CUDA 11.8" },
        { "11.8", "sm_90a", 0, "toolkit-too-old", "sm_90a, which needs CUDA 12.0" },
        { "13.0", "7.0", 0, "toolkit-too-old",
          "CUDA 13.0 no longer compiles for sm_70: dropped in CUDA 13.0" },
        { "12.8", "10.3f", 0, "toolkit-too-old", "needs CUDA 12.9" },
        { "12.8", "12.0+PTX", 14, NULL, NULL },
        { "12.1", "8.6", 13, "host-compiler-too-new",
          "GCC 13 is newer than GCC 12, the last that CUDA 12.1 takes" },
        { "12.1", "8.6", 5, "host-compiler-too-old", "GCC 5 is older than GCC 6" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct build b = { .toolkit = { .version = xstrdup(asked[i].cuda) }, .gcc = asked[i].gcc };
        struct scene s;

        begin(&s);
        strv_add(&b.archs, asked[i].arch);
        s.c.build = &b;
        if (asked[i].fires)
            says(only(&s, asked[i].fires), asked[i].text);
        else if (judge(&s))
            fail_msg("CUDA %s for %s: %s", asked[i].cuda, asked[i].arch, s.out.v[0].text);
        strv_release(&b.archs);
        free(b.toolkit.version);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),   cmocka_unit_test(libraries), cmocka_unit_test(toolkits),
        cmocka_unit_test(drivers), cmocka_unit_test(pinned),    cmocka_unit_test(builds),
        cmocka_unit_test(shadows),
    };

    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
