/* elf/elf_priv.h - what the files of lib/elf share. */
#ifndef RECON_ELF_PRIV_H
#define RECON_ELF_PRIV_H

#include <sys/stat.h>
#include "elf/elf.h"

/* ---- bounded reading (reader.c) ---- */

enum { READER_MAX = 4096, READER_VIEWS = 4, HEAD_WINDOW = 1024 }; /* HEAD_WINDOW: mostly holds an object's headers and notes */

/* Reads by pread, so that a file that shrinks meanwhile gives an error and no signal. */
struct reader {
    int fd;
    uint64_t size;    /* the file's at the time of fstat */
    size_t window;    /* bytes to read at once, 4096; less where the file is skipped through */
    unsigned last;    /* the view read last: the oldest is the next one, round about */
    unsigned hot;     /* the view used last */
    struct view { uint64_t at; size_t n; uint8_t buf[READER_MAX]; } views[READER_VIEWS]; /* tables and their texts lie apart */
};
void reader_init(struct reader *r, int fd, uint64_t size);
const uint8_t *reader_fetch(struct reader *r, uint64_t off, size_t n);
/* n bytes (at most 4096) at off, valid until the next call; NULL when the file has not got them. */
static inline const uint8_t *reader_at(struct reader *r, uint64_t off, size_t n)
{
    const struct view *v = &r->views[r->hot];

    if (off >= v->at && off - v->at <= v->n && v->n - (off - v->at) >= n)
        return v->buf + (off - v->at);
    return reader_fetch(r, off, n);
}
/* The NUL-terminated text at off that ends before end, valid until the next call; NULL if it does not, or is longer than 4095
 * bytes. */
const char *reader_text(struct reader *r, uint64_t off, uint64_t end, size_t *ret_n);
char *reader_string(struct reader *r, uint64_t off, uint64_t end); /* the same; owned */
/* little-endian */
static inline uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) | (uint32_t)get16(p + 2) << 16;
}
static inline uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* Opens without ever waiting (FIFO, device). *ret_what: NULL for a regular file, else what it is ("a FIFO").
 * -1 with errno. */
int open_calmly(const char *path, struct stat *ret_st, const char **ret_what);

/* ---- one object (object.c) ---- */

/* Reads from an open regular file, of which r may hold parts already. On failure *ret_problem (owned) says what the file
 * is, without its name: "17 bytes of text". path is for the record. */
int object_read_open(struct reader *r, const struct stat *st, const char *path, bool images, struct object *ret,
                   char **ret_problem);
/* What a file that is no ELF object is, from its first bytes; owned. */
char *file_kind(struct reader *r);

/* ---- ld.so.cache (cache.c) ---- */

struct cache {
    struct str bytes;
    size_t table, count, entry, strings; /* entries' offset, number and size; base of the text offsets */
    size_t names, n_names;               /* offsets of the hwcap names, in bytes */
    bool new_format;
};
/* A cache that is missing or not understood is an empty one, as the loader takes it; -1 then. */
int cache_parse(struct cache *c, struct err *err); /* of c->bytes */
int cache_open(struct cache *c, const char *path, struct err *err);
/* The path for name, or NULL; points into the cache. machine: e_machine; l: whose hwcaps and legacy subdirectories count. */
const char *cache_find(const struct cache *c, const char *name, int machine, int elfclass, const struct loader *l);
void cache_close(struct cache *c);

/* ---- dynamic string tokens and roots (token.c) ---- */

/* $ORIGIN, $LIB, $PLATFORM and their ${} forms; NULL when one has no value. Owned. */
char *token_expand(const char *s, const char *origin, const struct loader *l);
/* Does the path have $ORIGIN? 1: once, as the whole first component, as secure mode wants it; -1: otherwise; 0: no. */
int token_origin(const char *s);
/* The path on this host of a path inside root, symlinks followed inside root. Owned. */
char *root_path(const char *root, const char *path);

/* ---- the search (search.c, find.c) ---- */

struct attempt {
    enum why why;
    char *path;
    const char *why_not;
};
struct place { /* one directory that files are looked for in, or only looked at */
    char *prefix; /* what stands before the name: "", "lib/", "/usr/lib/" */
    size_t index; /* in closure.dirs */
    bool exists, holds;
    size_t missed;    /* the search that noted it last */
};
struct dir { /* one element of a search path with its subdirectories, best first */
    char *key;
    size_t listed; /* the list that it was put into last */
    struct { struct place *v; size_t n, cap; } places;
};
struct list { /* a search path: indices of search.dirs */
    bool known;
    size_t *v;
    size_t n, cap;
};
struct paths { struct list rpath, runpath; }; /* of one object */
struct file_id { uint64_t dev, ino; };
struct turn { size_t lib; bool done; }; /* an object in the order of the scope; done: its needs are there */
struct slot { uint64_t hash; const char *name; size_t value; };
struct names { struct slot *v; size_t n, cap; }; /* texts (not owned) to numbers; open addressing, cap a power of two */

struct search {
    struct closure *c;
    const struct closure *scope; /* what is loaded already (closure_extend), or NULL */
    const struct loader *l;
    struct loader own;           /* musl's, where the program wants that */
    bool preloading;             /* LD_PRELOAD, for which musl looks into no run path */
    const char *cwd;
    bool images, secure;
    struct symbols *symbols;     /* where the tables of what is loaded go; NULL: nowhere */
    int elfclass, machine, data; /* of the main program */
    char *origin;                /* of the main program */
    char *interp;
    struct cache cache;
    struct { struct dir *v; size_t n, cap; } dirs;
    struct list env, def, main_rpath;
    struct { struct paths *v; size_t n, cap; } paths; /* by object */
    struct { char **v; size_t n, cap; } owned;        /* names that slots point to and nothing else owns */
    struct { struct turn *v; size_t n, cap; } order;  /* every object once */
    struct { struct file_id *v; size_t n, cap; } files; /* of the objects that are known; else zeros */
    struct names names, keys;                         /* of objects, of directories */
    size_t lists, searches;                           /* how many were made: their numbers */
    struct { struct attempt *v; size_t n, cap; } attempts;
    struct { size_t *v; size_t n, cap; } missed;
    struct reader r;                                  /* of the file that was found; last: it is not cleared */
};
void search_init(struct search *s, struct closure *c, const struct loader *l, const char *cwd, bool images,
                 struct symbols *symbols);
void search_release(struct search *s);
void search_environment(struct search *s, char *const *env);
/* A path of the loader's in its directories; NULL: none. program: it is the main program's run path. */
void search_list(struct search *s, struct list *l, const char *path, const char *separators, const char *origin,
                 bool program);
const struct list *search_default(struct search *s);
void search_name(struct search *s, const char *name, size_t lib); /* the first lib of a name keeps it; name stays where it is */
char *search_own(struct search *s, char *text);                   /* keeps it until the search ends */
size_t search_known(const struct search *s, const char *name);    /* SIZE_MAX: none */

struct hit {
    enum why why;
    char *path;       /* as the loader has it, made absolute; owned */
    int fd;
    struct stat st;
    size_t found_in;
    char *corrupt;    /* owned; fd is then -1; the rest is set */
    bool missing;     /* found nowhere */
};
/* Looks for name on behalf of object `from`. attempts and missed tell of this search. */
void search_find(struct search *s, const char *name, size_t from, struct hit *ret);
char *search_host_path(const struct search *s, const char *path);

/* ---- musl (musl.c) ---- */

void search_adopt(struct search *s, const char *interp); /* turns to musl's rules where interp is musl's */
bool musl_own_name(const char *name);                    /* "libc.so", "libm.so.6": the loader itself */
/* A run path, expanded; NULL: not to be used. Owned. */
char *musl_run_path(const char *path, const char *origin, bool no_origin);

/* ---- versions (versions.c) ---- */

void closure_note_versions(struct closure *c); /* fills lacking */

/* ---- loading (closure.c) ---- */

struct library *search_add_library(struct search *s, const char *soname, enum why why, size_t needed_by);
void search_add_edge(struct search *s, size_t from, size_t to, char *name); /* takes the name */
void search_know(struct search *s, size_t lib); /* by its name, path and SONAME */
void search_preloads(struct search *s, char *const *env);
/* Index of the object that `name` is for object `from`, loaded now if it was not; SIZE_MAX none. */
size_t search_need(struct search *s, const char *name, size_t from);
void search_drop_last(struct search *s);        /* the object added last, which nothing knows yet */

/* ---- the walk (walk.c) ---- */

/* Everything that what is there needs; then the objects stand in the order of the scope. Indices of search are void after. */
void search_walk(struct search *s);
/* Fills the paths of what an object of c may open, from l[first] on (program.c). */
void search_for_maybes(const struct closure *c, const struct closure *scope, char *const *env, const char *cwd,
                       const struct loader *l, struct maybes *ret, size_t first);

#endif
