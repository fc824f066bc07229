/* What the files of lib/check share. */
#ifndef RECON_CHECK_PRIV_H
#define RECON_CHECK_PRIV_H

#include "check/check.h"

/* ---- compat.c ---- */

struct compat_toolkit {
    const char *cuda, *driver; /* driver: the toolkit's own; NULL: there is no such toolkit */
    const char *ptx_isa;
    int max_gcc, min_gcc;
};
const struct compat_toolkit *compat_toolkit(const char *cuda); /* NULL unknown */
int compat_capability(const char *capability);                 /* "9.0" -> 90; 0: none such */
int compat_known_capability(size_t i);                         /* the i-th that is known, ascending; 0: no more */
const char *compat_products(int capability);                   /* "A100, A30"; NULL unknown */
int compat_gcc_of_node(const char *node);                      /* "GLIBCXX_3.4.30" -> 12; 0 unknown */

/* ---- scene.c: what several rules ask of a case ---- */

/* Walks every object of every closure, a path once. lib NULL at the end. Start with {0}. */
struct walk {
    size_t closure, index, at;
    const struct closure *in;
    const struct library *lib;
};
bool walk_next(const struct check_case *c, struct walk *w);
/* The walk of a case, made once for all rules where there are several closures: else each step looks through those before. */
struct walks {
    struct walk *v;
    size_t n, cap;
};
void walks_make(const struct check_case *c, struct walks *ret);

const char *library_name(const struct library *l);    /* path, else SONAME */
const char *needer(const struct closure *c, const struct library *l); /* who asked first */
/* Found among the system's own libraries: on another node that node's would be taken. */
bool library_of_system(const struct library *l);
bool library_of_driver(const char *soname);           /* libcuda.so.1 and its kin: they come with the driver */
/* The file that has the name but another class or machine, when it is found nowhere else; NULL. */
const struct tried *library_wrong_class(const struct library *l);
/* Its GPU code: as read, or as the pin has it where nothing was read again. scratch starts as {0} and is released by
 * images_release whatever comes back. */
const struct gpu_images *library_images(const struct check_case *c, const struct library *l, struct gpu_images *scratch);
/* The images as a pin has them, one container for each set; appends. */
void images_of_pin(const struct pin_object *o, struct gpu_images *ret);
/* A FIFO, socket or device has the name. */
bool library_is_special(const struct library *l);
char *const *case_env(const struct check_case *c);    /* of the program: the resolution's, else as received; NULL unknown */
const char *case_var(const struct check_case *c, const char *name); /* its value there; NULL unset or unknown */
/* The vendor whose library this SONAME is: "nvidia", "amd", a profile's name; NULL: none. */
const char *vendor_of(const struct check_case *c, const char *soname);
bool node_has_vendor(const struct facts *f, const char *vendor);
/* A vendor of the node's GPUs that cannot run this library; NULL: nothing known against it. */
const char *vendor_instead(const struct check_case *c, const char *soname);
bool case_uses_gpu(const struct check_case *c);       /* GPU code or a GPU runtime is in its closures or its pin */
/* A compat folder puts a newer libcuda before the driver's: then the kernel module's release is not what counts. */
bool case_forward_compatible(const struct check_case *c);
/* Folder of a file that was found below a folder of this name ("stubs", "compat"). */
bool path_in(const char *path, const char *folder);
/* "libcuda.so.570.211.01" -> "570.211.01" inside name; NULL */
const char *release_in(const char *path);

/* CUDA_VISIBLE_DEVICES against the node's GPUs. */
struct visible {
    struct strv entries;
    size_t good;      /* leading entries that name a GPU */
    const char *bad;  /* the first that does not; NULL: all do */
    size_t gpus;      /* of the node */
    bool by_uuid;     /* bad is a UUID */
};
/* 1 filled (visible_release it), 0 nothing to say (unset, empty, or meant to hide all), -1 the GPUs are not known. */
int visible_devices(const struct check_case *c, struct visible *ret);
void visible_release(struct visible *v);

const char *case_node(const struct check_case *c);    /* host name, "this node" if unknown */
const char *driver_cuda(const struct facts *f);       /* CUDA version of the driver, by NVML or by its branch; NULL */
/* "export LD_LIBRARY_PATH=DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", and where the pinned value comes back anyway how it
 * gets into the pin; owned */
char *remedy_library_path(const struct check_case *c, const char *file);
/* The same without the folder of a file: "export LD_LIBRARY_PATH='/rest'", "unset LD_LIBRARY_PATH"; owned */
char *remedy_without_folder(const struct check_case *c, const char *file);

/* ---- arch.c: images against GPUs ---- */

enum fit { FIT_NO_CODE, FIT_SASS, FIT_PTX, FIT_PTX_TOO_NEW, FIT_NONE }; /* from best to worst */
struct arch_verdict {
    enum fit fit;
    uint32_t containers, unfit;  /* judged ones; those that do not run */
    bool specific;               /* only the suffix (a, f) is in the way */
    const char *variable;        /* of the environment, "CUDA_FORCE_PTX_JIT=1", without which the verdict were another; NULL none */
    char isa[16];                /* PTX ISA of the image that fits but for the driver, or that will be compiled */
};
struct arch_target {
    const char *capability, *driver_isa;
    const char *force, *forbid;  /* the variable by which the driver passes over SASS, or compiles no PTX; NULL none */
};
/* One object against one GPU. soname tells the libraries that choose among their images by themselves. */
void arch_judge(const struct gpu_images *images, const char *soname, const struct arch_target *t, struct arch_verdict *ret);
/* What the program's environment has of CUDA_FORCE_JIT, CUDA_FORCE_PTX_JIT, CUDA_DISABLE_JIT and CUDA_DISABLE_PTX_JIT (CUDA
 * programming guide, "CUDA environment variables"). */
void arch_jit(const struct check_case *c, struct arch_target *t);
/* Where these images run as they are: "8.0 (A100, A30), 8.9 (L40S, L4)"; owned, NULL: nowhere. */
char *arch_runs_on(const struct gpu_images *images, const char *soname);
/* "sm_80 sm_86, PTX compute_90 (ISA 8.4)"; owned */
char *arch_list(const struct gpu_images *images);
/* Calls back for each object with GPU code and each distinct GPU of the node. -1 (with err) when there is code and the
 * GPUs are not known. */
typedef void arch_f(const struct check_case *c, const char *path, const struct gpu_images *images,
                    const struct facts_gpu *gpu, const struct arch_verdict *v, struct findings *out);
int arch_each(const struct check_case *c, arch_f *call, struct findings *out, struct err *err);
/* "unset NAME" of a verdict's variable; owned */
char *arch_unset(const struct arch_verdict *v);
/* Does CUDA_VISIBLE_DEVICES hide every GPU of the node that the program runs on? */
bool devices_hidden(const struct check_case *c);

/* ---- hip.c: HIP code against AMD's GPUs ---- */

/* A target of code, "gfx90a:sramecc+:xnack-" or "gfx10-3-generic", and a GPU, "gfx90a" or with its features. 1 runs, 0 does
 * not, -1 depends on a feature of the GPU that is not told. Rules: LLVM, "User guide for AMDGPU backend", target ID and generic
 * processors. */
int hip_runs(const char *target, const char *gpu);
/* The best of what a file holds. */
int hip_fit(const struct strv *targets, const char *gpu);
/* Findings for each object with HIP code and each AMD GPU of the node. -1 (with err) when there is code and the GPUs are not
 * known. */
int hip_each(const struct check_case *c, struct findings *out, struct err *err);

/* ---- openmp.c: OpenMP's device code, as clang has it ---- */

/* A finding for each object with code of which no GPU of the node runs any. -1 (with err) when there is code and no GPU is known. */
int openmp_each(const struct check_case *c, struct findings *out, struct err *err);

/* "GPU 'NVIDIA H200' (9.0)"; owned */
char *gpu_words(const struct facts_gpu *g);

#endif
