/* pin/pin_priv.h - what the files of lib/pin share. */
#ifndef RECON_PIN_PRIV_H
#define RECON_PIN_PRIV_H

#include "pin/pin.h"

struct pin_object *pin_add_object(struct pin *p); /* with the rows' defaults */

/* Of the environment and the host (here.c). reusable: everything resolved, so the search may be spared later. */
/* env without empty elements of LD_LIBRARY_PATH, which mean whatever folder a job happens to be in. */
void pin_steady_environment(char *const *env, struct strv *ret);
void pin_add_variables(struct pin *p, const struct pin_request *r);
void pin_add_setting(struct pin *p, char *const *env, const char *prefix); /* prefix NULL: the active one */
void pin_add_host(struct pin *p);
/* What the search of this loader depends on besides directories: ld.so.cache, musl's list of directories; owned, NULL none. */
char *pin_loader_file(const char *interp, const struct loader *l);
void pin_add_loader(struct pin *p, const char *path, const struct loader *l, bool reusable);

/* The loader of facts (NULL, or silent about it: this host's, or by table for another root). */
void loader_of(const struct facts *f, const char *root, struct loader *ret);
/* l, or where the program wants another loader of this host that is root's or the user's: that one, in *scratch. */
const struct loader *loader_for(const struct loader *l, const char *program, struct loader *scratch);

/* Files that belong to the system are not the job's: each node has its own. */
bool in_default_dirs(const struct loader *l, const char *path);
/* libcuda.so.1 and its kin come with the driver of the node that has a GPU; a login node has none of them. */
bool driver_library(const char *soname);
/* "export NAME='value'" or "unset NAME"; false: no shell takes the name. */
bool pin_shell_line(const struct pin_variable *v, struct str *ret);

/* Fills ret->drivers and driver_file where anything may want a driver; p may be NULL. */
void resolve_driver(struct resolution *r, const struct pin *p, const char *root);
/* Fills ret->shadows, by PYTHONPATH and the working directory. */
void resolve_shadows(struct resolution *r, const char *root);

void resolution_symbol_release(struct resolution_symbol *x);

/* Digests of files, several at a time. memory: the file that remembers them between runs, NULL none: all are read. */
struct digest_job {
    const char *path;         /* NULL: nothing to do */
    char digest[DIGEST_SIZE]; /* "" with err */
    struct err err;
};
void digests_of(struct digest_job *jobs, size_t n, const char *memory);

/* Appends what importing the packages ("cuda.core") loads, in order. tag: ".cpython-311-". */
void python_imports(const struct python *p, const char *tag, const struct strv *packages, struct python_modules *ret);

/* A program's objects and those of the modules that it opened so far. */
struct host {
    const struct loader *l;
    char *const *env;
    const char *cwd;          /* NULL: the current one */
    struct closure loaded;
};
void host_start(struct host *h, const struct closure *program, const struct loader *l, char *const *env, const char *cwd);
/* dlopen: what it adds stays loaded when all was found. -1: the file cannot be read. */
int host_open(struct host *h, const char *path, bool global, struct closure *ret, struct err *err);
bool host_whole(const struct closure *c); /* everything was found and can be loaded */
void host_end(struct host *h);
/* Opens modules after the program r->closures.v[0], as resolve_host says. */
void host_modules(struct resolution *r, const struct python_modules *modules, const struct strv *libraries,
                  const struct loader *l, const char *cwd);

/* Unchanged since the pin: fills ret->closures from the pin and gives true. */
bool resolution_reuse(const struct pin *p, const struct facts *f, const struct loader *l, struct resolution *ret);

/* Targets of HIP and OpenMP into o. */
void pin_targets(const struct gpu_images *l, struct pin_object *o);

#endif
