/* pin/pin.h - what was promised on the login node, and how it resolves on this one.
 *
 * Format: doc/format-pin.md, libconfig by pin_rows. Written whole or not at all.
 */
#ifndef RECON_PIN_H
#define RECON_PIN_H

#include "base/base.h"
#include "conf/conf.h"
#include "elf/elf.h"
#include "node/node.h"

enum pin_how { PIN_SET, PIN_PREPEND, PIN_APPEND, PIN_UNSET };
extern const struct name pin_how_names[];
struct pin_variable { char *name; int how; char *value; };

struct pin_gpu { /* the images of one object, as its containers have them: one entry a distinct set */
    int64_t containers;          /* how many containers have this set */
    struct strv sass, ptx;       /* "sm_90", "sm_90a"; "compute_121" */
    char *ptx_isa, *toolkit;     /* highest */
};
enum pin_role { PIN_PROGRAM, PIN_MODULE, PIN_LIBRARY };
extern const struct name pin_role_names[];
struct pin_need { char *file, *version; bool weak; };
struct pin_object {
    int role;
    char *soname, *path;
    int why;                     /* enum why */
    struct conf_ints needed_by;  /* indices of objects */
    int64_t found_in;            /* index of dirs, CONF_UNSET */
    struct conf_ints missed;     /* directories searched before in vain */
    char *build_id;
    int64_t size, mtime_ns;
    char *digest;
    struct pin_gpus { struct pin_gpu *v; size_t n, cap; } gpu;
    struct strv hip;             /* targets of its HIP code, "gfx90a:xnack-"; none where some of it cannot be read */
    struct strv openmp;          /* of OpenMP's device code, "sm_80"; of IR "ir:sm_80" */
    bool global;                 /* a module that is opened with RTLD_GLOBAL */
};
struct pin_dir { char *path; int64_t mtime_ns; };

struct pin {
    int64_t version; /* 1 */
    struct { char *node, *time, *recon, *umask; } captured;
    struct { struct pin_variable *v; size_t n, cap; } variables;
    struct strv modules;   /* Lmod modules loaded at capture */
    char *prefix;          /* conda or venv prefix, "" if none */
    struct { int64_t memlock, open_files; } limits;
    struct { char *glibc, *glibcxx, *cuda_runtime, *driver, *cpu_isa; } requires;
    struct { char *path, *build_id; int64_t cache_size, cache_mtime_ns; struct strv hwcaps; } loader;
    struct { struct pin_dir *v; size_t n, cap; } dirs;
    struct { struct pin_object *v; size_t n, cap; } objects;
    char *name;            /* of this body among variants; NULL none */
    struct { struct pin *v; size_t n, cap; } variants; /* further whole bodies, without variants of their own */
    char *digest;          /* of the file's bytes; set by pin_read and pin_write, not in the file */
};
extern const struct conf_row pin_rows[];

struct pin_request {
    struct strv programs;   /* first is the program, the rest modules (kernel modules, plugins), opened after the packages */
    struct strv packages;   /* Python packages, whose compiled modules the program (an interpreter) opens */
    const char *prefix;     /* of conda or a venv; NULL: the active one */
    const char *memory;     /* file that remembers digests between runs; NULL none */
    struct strv variables;  /* names to capture besides the default set */
    char *const *env;       /* the environment to capture from */
    const char *cwd;
    bool allow_missing;     /* record what does not resolve instead of refusing */
};
/* The default set of variables: CUDA_HOME, LD_LIBRARY_PATH, LD_PRELOAD, PATH, ... ends with name NULL. */
struct pin_default {
    const char *name;
    bool always;            /* recorded as `unset` when absent: a stray value on the node would change what is loaded */
    const char *why;
};
extern const struct pin_default pin_default_variables[];

/* CODE_NOTFOUND program missing, CODE_DATA not a program; libraries that do not resolve are an error here:
 * CODE_JOB and the text names the first of them and where it was looked for.
 * A program may be a script: its interpreter and that one's libraries are then recorded after it. ret_left (may be NULL):
 * a line for each module of a package that is left out, since it cannot be loaded here and its package may do without. */
int pin_capture(const struct pin_request *r, struct pin *ret, struct strv *ret_left, struct err *err);
int pin_read(const char *path, struct pin *ret, struct err *err);
int pin_write(const char *path, struct pin *p, struct err *err);
void pin_release(struct pin *p);
/* A pin's own body is number 0, its variants follow. */
size_t pin_bodies(const struct pin *p);
const struct pin *pin_body(const struct pin *p, size_t i);
/* The body of this name; NULL: there is none. */
const struct pin *pin_named(const struct pin *p, const char *name);
/* Adds the bodies of `more` to p as variants; `name` becomes the name of the first (NULL: its own). Takes them: more is empty then.
 * CODE_USAGE: a name is missing or given twice. */
int pin_merge(struct pin *p, struct pin *more, const char *name, struct err *err);
/* The distinct sets of images that a file's containers have: link stubs left out, relocatable containers counted as what
 * the driver can link from (doc/elf.md). Appends to ret; released with the object, or by pin_gpus_release. */
void pin_gpu_sets(const struct gpu_images *l, struct pin_gpus *ret);
void pin_gpus_release(struct pin_gpus *l);
/* The environment that the job gets: env with the pin's variables replayed. */
void pin_environment(const struct pin *p, char *const *env, struct strv *ret);

struct resolution_symbol { /* a reference that nothing answers (closure_symbols) */
    size_t closure, object;
    char *name, *shown;        /* mangled; for people, NULL: no C++ name */
    char *version, *file;      /* that the reference names; NULL none */
    size_t provider;           /* index in the closure of the library that should have it; SIZE_MAX unknown */
    bool lazy, unversioned;    /* as in struct symbol_miss */
    char *twin, *twin_shown;   /* the same C++ function of other arguments or ABI, which is there; NULL none */
    char *twin_lib;            /* its library's path */
};

/* resolve(pin, facts, root): reads files. One closure for the program and one for each module in the program's scope. */
struct resolution {
    struct { struct closure *v; size_t n, cap; } closures; /* [0] the program */
    struct strv env;       /* the environment used */
    bool reused;           /* unchanged since the pin: stamps matched, nothing was searched again */
    struct { struct resolution_symbol *v; size_t n, cap; } symbols; /* by resolution_symbols */
    bool symbols_known;    /* they were looked up */
    struct symbols *tables; /* what was read of them with the objects: resolution_symbols uses it up; NULL: nothing */
    size_t references;     /* how many */
    struct { struct maybes *v; size_t n, cap; } maybes; /* of each closure; by resolution_maybe */
    struct strv optional;  /* modules (as their closures' [0]) that their package may do without */
    struct strv opened;    /* "libx.so.1=PATH (for MODULE)": opened before a module, as Python code must do; by resolve_host */
    struct strv failed;    /* what could not be resolved for a reason of recon's own: rules say not-checked */
    struct strv drivers;   /* files libcuda.so.1 that this environment puts before the system's, in the loader's order */
    struct strv shadows;   /* "torch=/work/torch.py": what hides a Python package of the closures in sys.path */
    char *driver_file;     /* the file behind the first of them (symlinks followed), or behind the system's one that the
                            * program is linked with; NULL: not known */
};
/* Do the facts say of the loader what this host's own would say now: taken in this boot, of the very same loader? */
bool resolve_loader_known(const struct facts *f);
/* facts may be NULL: this host's loader is asked. root "" is this host. */
int resolve(const struct pin *p, const struct facts *f, const char *root, char *const *env, struct resolution *ret,
            struct err *err);
/* The same for a program without a pin (recon-check PROGRAM). symbols as in closure_resolve. */
int resolve_program(const char *program, const struct facts *f, const char *root, char *const *env, struct symbols *symbols,
                    struct resolution *ret, struct err *err);
/* A Python interpreter and where it imports from, by files alone: pyvenv.cfg, its prefix, PYTHONPATH, .pth files. */
struct python {
    char *program;         /* as named; a venv's is its link to the interpreter */
    char *version;         /* "3.11" */
    struct strv path;      /* directories that exist, in order of sys.path */
};
/* program: a path. CODE_NOTFOUND; CODE_DATA: no interpreter whose library folder is found. */
int python_find(const char *program, char *const *env, struct python *ret, struct err *err);
void python_release(struct python *p);
struct python_module {
    char *path;
    bool global;           /* opened with RTLD_GLOBAL: torch's libtorch_global_deps.so */
    bool optional;         /* no import of the package was seen to need it */
};
struct python_modules { struct python_module *v; size_t n, cap; };
/* Appends the compiled modules that importing the packages loads, those of other packages too, in the order of their imports;
 * then the packages' others, outer folders first. Below no __init__.py none is optional. ret_bare (may be NULL): packages that
 * have no compiled module of their own. CODE_NOTFOUND: no such package in path; CODE_JOB: its modules are for other versions of
 * Python. */
int python_modules(const struct python *p, const struct strv *packages, struct python_modules *ret, struct strv *ret_bare,
                   struct err *err);
void python_modules_release(struct python_modules *l);
/* Folders of libraries in packages (nvidia's and others'), of which Python code opens files by itself (ctypes). */
void python_libraries(const struct python *p, struct strv *ret);

/* As resolve_program, for a program and the modules that it opens one after another (dlopen): each finds what those before it
 * loaded; optional ones come last. A module whose libraries are not found is tried again after the others, and after the file of
 * that name in `libraries` (may be NULL) was opened: ret->opened. places: where candidates may lie besides; may be NULL. */
int resolve_host(const char *program, const struct python_modules *modules, const struct strv *libraries, const struct facts *f,
                 char *const *env, const struct strv *places, struct resolution *ret, struct err *err);

/* Looks up every reference of every object (as ldd -r): some 0.2 ms an object. A module is in
 * the scope of the last program before it. root and places as in closure_candidates; places may be NULL. */
void resolution_symbols(struct resolution *r, const char *root, const struct strv *places);
/* The same where an object is another build than pinned, the system's versioned libraries left out; keeps what concerns such
 * an object. Costs nothing where nothing changed, so the launcher does it. */
void resolution_symbols_changed(struct resolution *r, const struct pin *p, const char *root, const struct strv *places);
/* What the objects of each closure may open by dlopen: appends one list a closure to ret->maybes. facts and root as in resolve. */
void resolution_maybe(struct resolution *r, const struct facts *f, const char *root);
void resolution_release(struct resolution *r);

/* What of a pin is otherwise here and now, in the order of the pin. rule: the name that lib/check uses for it. */
struct pin_difference {
    const char *rule;   /* "lib-not-found", "lib-corrupt", "lib-changed", "glibc-too-old", "env-drift", ... */
    bool missing;       /* a file that the job cannot do without */
    bool job;           /* no other node will do: the environment, or a need that the pin knows no place of */
    char *object, *text;
};
struct pin_differences { struct pin_difference *v; size_t n, cap; };
/* env: as it is here, before the pin is replayed. digests: files are read, else size and build-id decide. */
void pin_compare(const struct pin *p, const struct resolution *r, char *const *env, bool digests,
                 struct pin_differences *ret);
/* What the second has otherwise. rule: the kind, "variable", "module", "prefix", "requires", "limit", "loader", "file" (path),
 * "content" (digest or build-id), "gpu" (images). Libraries are matched by SONAME. */
void pin_diff(const struct pin *a, const struct pin *b, struct pin_differences *ret);
/* The variables in another language: "sh", "sbatch", "lmod", "tcl", "dotenv". Names that no shell takes are left out and go
 * to ret_left. CODE_USAGE: no such format. */
int pin_export(const struct pin *p, const char *format, struct str *ret, struct strv *ret_left, struct err *err);
/* What is installed now in the pin's prefix: "conda-explicit" (addresses and digests of conda's packages) or "requirements"
 * (names and versions of Python's, pip itself left out). What is left out, or will not be found elsewhere, goes to ret_left as
 * one line each. CODE_USAGE: the pin has no prefix; CODE_IO: there is no such package in it. */
int pin_packages(const struct pin *p, const char *format, struct str *ret, struct strv *ret_left, struct err *err);
void pin_differences_release(struct pin_differences *l);

struct pin_bundle {
    size_t files;              /* copied */
    uint64_t bytes;
    struct strv left;          /* "libc.so.6 (system)", "libcuda.so.1 (driver)": what the other machine must have */
    struct strv variables_left; /* names of variables that name places of this machine, or that no shell takes */
};
/* Makes the folder dir with the pin's own files and a script that runs them elsewhere; whole or not at all, never over what is
 * there. CODE_CREATE; CODE_NODE: a file is not what was pinned; CODE_USAGE: Python packages, a loader of its own; CODE_DATA: two
 * files would have one name. pin_bundle_release(ret) either way. */
int pin_bundle(const struct pin *p, const char *dir, struct pin_bundle *ret, struct err *err);
void pin_bundle_release(struct pin_bundle *b);

#endif
