/* elf/elf.h - one ELF object; the loader's search; the closure; versions; GPU images. Reads files, runs nothing.
 *
 * Sources: System V gABI, glibc 2.36 elf/dl-load.c as described in ld.so(8), the fat binary layout of doc/elf.md.
 * Any bytes as input end in a result or an error within bounded time and memory: sizes are held against the file's.
 */
#ifndef RECON_ELF_H
#define RECON_ELF_H

#include "base/base.h"

/* ---- GPU images ------------------------------------------------------------------------------------ */

enum image_kind { IMAGE_PTX = 1, IMAGE_SASS = 2, IMAGE_LTO = 8 };
struct gpu_image {
    enum image_kind kind;
    uint32_t container;       /* which fat binary container (translation unit) of the file, from 0 */
    uint16_t arch;            /* 90 for sm_90 */
    char suffix;              /* 0, 'a' or 'f' */
    uint16_t major, minor;    /* PTX ISA; SASS: format version */
    bool relocatable;         /* in __nv_relfatbin */
    bool link_stub;           /* nvcc's device-link container: never judge by it */
    uint16_t toolkit;         /* that built it at the least, 130 for 13.0; 0 unknown */
};
enum offload_producer { OFFLOAD_OPENMP, OFFLOAD_CUDA, OFFLOAD_HIP, OFFLOAD_SYCL };
enum offload_form { OFFLOAD_CODE, OFFLOAD_PTX, OFFLOAD_IR }; /* machine code, PTX, LLVM IR or SPIR-V */
struct offload_image {        /* device images in clang's .llvm.offloading of one producer, form and target */
    enum offload_producer producer;
    enum offload_form form;
    uint32_t count;
    char *target;             /* "sm_90", "gfx90a:xnack-"; the triple where there is no architecture, "spirv64" */
};
struct gpu_images {
    struct gpu_image *v;
    size_t n, cap;
    uint32_t containers;
    char *toolkit;            /* highest toolkit that built an image, "13.0"; NULL unknown */
    struct strv hip;          /* targets of HIP code, "gfx90a:xnack-"; those of all bundles, each once */
    uint32_t bundles, hip_unread; /* HIP bundles; of these compressed in a way that this build does not read */
    struct offload_images { struct offload_image *v; size_t n, cap; } offload; /* OpenMP's code of a program; the others' is not linked */
};

/* ---- one object ------------------------------------------------------------------------------------ */

struct version_need {         /* one DT_VERNEED auxiliary */
    const char *file, *version; /* "libc.so.6", "GLIBC_2.34"; in the object's texts */
    bool weak;
    uint16_t index;           /* what DT_VERSYM has for it, with the hidden bit 0x8000 */
    uint32_t hash;            /* of its name, as the file has it: the loader compares both */
};
struct version_def {          /* one DT_VERDEF */
    uint16_t index;           /* what DT_VERSYM has for it; 0: the file's own name */
    uint32_t hash;
};
struct filter {               /* DT_FILTER or DT_AUXILIARY: a library that is looked into before this one */
    char *name;
    size_t after;             /* how many DT_NEEDED stand before it */
    bool auxiliary;           /* DT_AUXILIARY: nothing is lost when it cannot be loaded */
};
/* Where the dynamic symbols and relocations lie: offsets in the file, sizes in bytes; 0: there is no such table. */
struct symbol_tables {
    uint64_t symtab, strtab, strsz, hash, gnu_hash, versym;
    uint64_t rela, relasz, relative; /* DT_RELA or DT_REL; how many at its start are relative */
    uint64_t jmprel, jmprelsz;
    bool rel, jmprel_is_rel;         /* entries have no addend */
};
struct object {
    char *path;               /* as opened */
    int elfclass, machine, type;   /* EI_CLASS, e_machine, e_type */
    char *soname, *interp, *rpath, *runpath, *build_id; /* NULL if absent */
    struct strv needed, audit; /* audit: DT_AUDIT and DT_DEPAUDIT, lists with colons */
    struct { struct filter *v; size_t n, cap; } filters;
    struct { struct version_need *v; size_t n, cap; } needs;
    struct strv versions;     /* DT_VERDEF names; the strings are in the object's texts */
    struct { struct version_def *v; size_t n, cap; } version_defs; /* of each */
    struct texts *texts;      /* blocks that needs and versions point into */
    struct symbol_tables tables;
    bool has_versym, bind_now, nodeflib, is_pie;
    bool dynamic;             /* has a dynamic section */
    bool big_endian;
    const char *isa;          /* x86 ISA level that its property note needs, "x86-64-v3"; static text; NULL none */
    struct gpu_images images;
    int64_t size, mtime_ns;
    uint64_t dev, ino;        /* of the file as opened: one file by two names is one object */
};
/* CODE_NOTFOUND, CODE_PERM, CODE_IO; CODE_DATA: not an ELF object, text says what it is instead. */
int object_read(const char *path, bool images, struct object *ret, struct err *err);
void object_copy(struct object *dst, const struct object *src);
void object_release(struct object *o);
/* For an object that is made by hand: the texts are copied, hashes are the gABI's. */
void object_add_need(struct object *o, const char *file, const char *version, bool weak);
void object_add_version(struct object *o, const char *name);
/* The images alone, also of a bare .fatbin or .cubin file, a HIP bundle, an offload binary or a static library. CODE_DATA: none of these. */
int images_read(const char *path, struct gpu_images *ret, struct err *err);
void images_release(struct gpu_images *l);

/* ---- the loader's search --------------------------------------------------------------------------- */

/* Where the loader of some node looks. All texts owned. */
struct loader {
    char *root;               /* "" or the folder that is "/" for the judged tree */
    struct strv dirs;         /* default directories */
    struct strv hwcaps;       /* glibc-hwcaps subdirectories, best first */
    char *lib, *platform;     /* $LIB, $PLATFORM */
    char *cache_path;         /* NULL: no cache */
    bool secure;              /* AT_SECURE whatever the program's mode */
    struct strv legacy;       /* subdirectories of glibc before 2.37: "tls/x86_64", "tls", "x86_64"; may be empty */
    char *preload;            /* content of /etc/ld.so.preload; NULL none */
    bool musl;                /* musl's rules: dirs alone of the above count */
    char *path;               /* the loader itself, "/lib64/ld-linux-x86-64.so.2"; NULL: what the program asks for */
};
/* What this host's own loader says (ld.so --list-diagnostics), without running the judged program. */
int loader_probe(struct loader *ret, struct err *err);
/* The same for another loader, as PT_INTERP names it (a prefix installation); it is run with --list-diagnostics. */
int loader_probe_path(const char *path, struct loader *ret, struct err *err);
/* By table, running nothing: for another root, or where the loader does not tell. machine: as uname says it. */
void loader_default(const char *root, const char *machine, struct loader *ret);
/* The subdirectories that glibc before 2.37 tries besides, for $PLATFORM and hwcaps; none from 2.37 on. glibc: "2.36". */
void loader_legacy(struct loader *l, const char *glibc);
/* musl's, for a PT_INTERP that loader_is_musl; closure_resolve and closure_extend turn to it by themselves. */
bool loader_is_musl(const char *interp);
void loader_musl(const char *root, const char *interp, struct loader *ret);
/* Its list of default directories, "PREFIX/etc/ld-musl-ARCH.path", which need not be there; owned. */
char *loader_musl_list(const char *interp);
void loader_release(struct loader *l);

enum why { WHY_PATH, WHY_PRELOAD, WHY_LOADED, WHY_RPATH, WHY_LD_LIBRARY_PATH, WHY_RUNPATH, WHY_CACHE, WHY_DEFAULT,
           WHY_NOT_FOUND };
extern const struct name why_names[]; /* "path", "preload", ..., "not-found" */

struct tried { /* one directory or file looked at before the hit */
    char *path;
    char *why_not; /* "no such file", "no such directory", "wrong class", "wrong machine", "permission denied" ... */
    enum why why;  /* the step of the search */
};
struct library { /* one object of the closure, in load order; [0] is the program */
    char *soname;             /* name it was asked by */
    char *path;               /* NULL when not found */
    enum why why;
    size_t needed_by;         /* index of the object that asked first; itself for [0] */
    size_t found_in;          /* index into closure.dirs, SIZE_MAX: none */
    struct { size_t *v; size_t n, cap; } missed; /* directories searched before in vain, by index */
    struct { struct tried *v; size_t n, cap; } tried; /* all when not found; else only files that were passed over */
    struct object object;     /* empty when not found or corrupt */
    char *corrupt;            /* why the file that the loader takes is no library: the loader would die here; or NULL */
    struct strv candidates;   /* where else on this node a fit file of the name lies; by closure_candidates */
    char *beside;             /* corrupt text that names a file which exists beside it (a lost symlink): that file */
    bool preload;             /* asked for by LD_PRELOAD or ld.so.preload: the loader warns and goes on without it */
};
struct edge {                 /* object `from` needs `name`, which is object `to` */
    size_t from, to;
    char *name;               /* as DT_NEEDED, DT_FILTER or DT_AUXILIARY has it, $ORIGIN expanded */
};
struct searched_dir { char *path; int64_t mtime_ns; }; /* mtime 0: does not exist */
struct closure {
    struct { struct library *v; size_t n, cap; } libs;
    struct { struct searched_dir *v; size_t n, cap; } dirs;
    struct { struct edge *v; size_t n, cap; } edges; /* every DT_NEEDED of every object, and its filters that are there */
    bool secure;              /* AT_SECURE: set-uid, set-gid or with file capabilities, for the user that this process is */
    bool musl;                /* loaded by musl: versions do not count, and every symbol is bound at the start */
    bool module;              /* made by closure_extend: lives in the scope of a program */
    bool global;              /* a module that was opened with RTLD_GLOBAL: serves those after it */
    struct version_misses *lacking; /* of closure_versions, once closure_candidates asked; what is missing does not change after it */
    size_t main;              /* the program that the loader starts: 0, or 1 where [0] is a script and [1] its interpreter */
};
/* Breadth-first, as ld.so loads: preloads, then DT_NEEDED; filters stand before the library that names them. env: the
 * environment the program would get. symbols: the tables of each object are read into it while its file is open; NULL: none. */
struct symbols;
int closure_resolve(const char *program, char *const *env, const char *cwd, const struct loader *l, bool images,
                    struct symbols *symbols, struct closure *ret, struct err *err);
/* What dlopen(module) by the program of `scope` loads: [0] is the module; what the scope has is there as WHY_LOADED. */
int closure_extend(const struct closure *scope, const char *module, char *const *env, const char *cwd,
                   const struct loader *l, bool images, struct symbols *symbols, struct closure *ret, struct err *err);
/* Adds what `more` has loaded to what is loaded, as after a dlopen; copies. For the scope of a further closure_extend. */
void closure_add_loaded(struct closure *loaded, const struct closure *more);
void closure_release(struct closure *c);
/* Fills `candidates` of what was not found, is corrupt, or lacks a version that is needed. Looks near the program (its folder, lib and lib64 beside it), in
 * lib and lib64 beside each LD_LIBRARY_PATH element and later elements of it, in the run paths of the other objects, below
 * CUDA_HOME, CONDA_PREFIX and VIRTUAL_ENV of env, and in places (toolkits; may be NULL). root as in struct loader. */
void closure_candidates(struct closure *c, char *const *env, const char *root, const struct strv *places);

/* Version needs that nothing in the closure offers. */
struct version_miss {
    size_t object;            /* who needs it */
    size_t provider;          /* index of the library that should offer it, SIZE_MAX: not in the closure */
    const char *version;      /* points into the closure */
    bool weak;
};
struct version_misses { struct version_miss *v; size_t n, cap; };
void closure_versions(const struct closure *c, struct version_misses *ret);

/* ---- symbols --------------------------------------------------------------------------------------- */

/* Tables of objects that were read already; by device and inode, so that several closures share them. */
struct symbols *symbols_new(void);
void symbols_free(struct symbols *s);

struct symbol_miss {          /* a reference that nothing in scope answers; weak ones are no misses */
    size_t object;            /* who refers to it: index in the closure */
    char *name;               /* mangled; owned */
    char *version, *file;     /* that the reference asks for, and of whom; owned, NULL none */
    size_t provider;          /* the library that should have it: by `file`, or by symbols_guess; SIZE_MAX unknown */
    bool lazy;                /* a function that is bound at its first call: the program starts without it */
    bool unversioned;         /* the provider has it, but has no versions at all: ld.so ends with a failed assertion */
};
struct symbol_misses {
    struct symbol_miss *v;
    size_t n, cap;
    size_t references;        /* looked up */
    size_t unread;            /* objects whose tables could not be read (big-endian, damaged): not judged */
};
/* What `ldd -r` finds: every relocation of the closure's objects (those not WHY_LOADED) is looked up in load order, in
 * the program's scope first when `scope` is given (the closure is then what dlopen brought, closure_extend): a list, ended by
 * NULL, of the program's closure and of those that were opened with RTLD_GLOBAL.
 * Rules of glibc 2.36 elf/dl-lookup.c do_lookup_x and check_match. Files whose tables are not in s are read, by object.path. */
void closure_symbols(struct symbols *s, const struct closure *c, const struct closure *const *scope,
                     struct symbol_misses *ret);
/* For references without a version (the first 16): of the libraries that the object needs, the one that has the symbol of the
 * longest common beginning, four bytes at least, is taken for the one that should have it. */
void symbols_guess(struct symbols *s, const struct closure *c, struct symbol_misses *m);
/* As closure_candidates, for libraries that should have a missed reference. */
void closure_candidates_symbols(struct closure *c, struct symbols *s, const struct symbol_misses *m, char *const *env,
                                const char *root, const struct strv *places);
/* Index of the library that `file`, as a reference of object `from` names it, led to; SIZE_MAX none. */
size_t closure_provider(const struct closure *c, size_t from, const char *file);
void symbol_misses_release(struct symbol_misses *l);
/* A defined C++ function of the scope with the same name and other arguments or ABI tags; owned, NULL none. *ret_lib:
 * path of its library, points into the closures. */
char *symbols_twin(struct symbols *s, const struct closure *c, const struct closure *const *scope, const char *name,
                   const char **ret_lib);
/* Does the object define the symbol for others? */
bool symbols_defines(struct symbols *s, const struct object *o, const char *name);
/* ---- what may be opened later ---------------------------------------------------------------------- */

struct maybe {                /* one library that an object may open by dlopen: optional, never needed */
    size_t object;            /* who: index in the closure */
    struct strv names;        /* alternatives, the best first */
    char *feature, *priority; /* as a note has them ("required", "recommended", "suggested"); NULL none */
    char *path;               /* the file that the loader would take; NULL: found nowhere */
    bool noted;               /* told by .note.dlopen; else a name in the read-only text of an object that imports dlopen */
};
struct maybes { struct maybe *v; size_t n, cap; };
/* Appends what the file's notes and, with `text`, its read-only data name. Paths stay NULL. */
void object_maybe(const struct object *o, bool text, size_t object, struct maybes *ret);
/* Appends what the objects of c (those not WHY_LOADED) may open besides what c and scope have, each name once, looked for
 * as dlopen by that object would. scope: the program's closure where c is a module's, else NULL. cwd NULL: the current one. */
void closure_maybe(struct symbols *s, const struct closure *c, const struct closure *scope, char *const *env,
                   const char *cwd, const struct loader *l, struct maybes *ret);
void maybes_release(struct maybes *l);

/* "c10::Error::Error(c10::SourceLocation, std::string)", cut at 1000 bytes; owned. NULL: no C++ name. */
char *symbol_demangled(const char *name);

#endif
