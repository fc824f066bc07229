/* base/base.h - what every module may use: errors, strings, vectors, files, children, clocks, terminals.
 *
 * Conventions of the whole tree
 *   0 is success and -1 failure; the last argument `struct err *err` (may be NULL) then says why.
 *   Results come through `ret_` arguments and are written on success only.
 *   Small host memory never fails: the x* functions end the process with status 71 (CODE_MEMORY).
 *   Anything whose size comes from input is asked for with malloc and checked.
 *   Libraries never print and never exit otherwise.
 */
#ifndef RECON_BASE_H
#define RECON_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- errors ---------------------------------------------------------------------------------------- */

/* Exit status of every program (DESIGN: Verdicts and exit status); also the class of an error. */
enum code {
    CODE_OK = 0,
    CODE_USAGE = 64,       /* command line or job.conf */
    CODE_DATA = 65,        /* this dataset's data */
    CODE_UNAVAILABLE = 69, /* a service does not answer */
    CODE_INTERNAL = 70,    /* a defect of recon */
    CODE_MEMORY = 71,
    CODE_CREATE = 73,      /* cannot create a file */
    CODE_IO = 74,          /* reading or writing failed */
    CODE_NODE = 75,        /* this node is unfit, another may do */
    CODE_PERM = 77,
    CODE_JOB = 78,         /* no node can do it */
    CODE_DEADLINE = 124,
    CODE_NOEXEC = 126,
    CODE_NOTFOUND = 127,
};

struct err {
    int code;        /* enum code; 0: no error yet */
    int sys;         /* errno at the time, 0 if none */
    char text[1000]; /* one line, no full stop; ends in "..." when cut */
};

/* Fills err (NULL: nothing) and returns -1. The text names the object, the value found and the value wanted. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);
/* The same, and appends ": " and the text of errno. */
int err_sys(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);
/* Puts "prefix: " before the text that stands in err; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Control characters, which names from files may hold, become '?': a text stays one line and no terminal obeys it. The three above do it. */
void err_clean(char *text);

/* ---- memory ---------------------------------------------------------------------------------------- */

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);            /* NULL gives NULL */
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);

/* A growing array: struct { T *v; size_t n, cap; }. VEC_ADD gives a pointer to a new zeroed element. */
#define VEC_ADD(vec)                                                                                         \
    (((vec)->n == (vec)->cap ? vec_grow((void **)&(vec)->v, &(vec)->cap, sizeof(*(vec)->v)) : (void)0),      \
     memset(&(vec)->v[(vec)->n], 0, sizeof(*(vec)->v)), &(vec)->v[(vec)->n++])
void vec_grow(void **v, size_t *cap, size_t size);

/* ---- strings --------------------------------------------------------------------------------------- */

/* A growing text; s is always NUL-terminated and never NULL after the first add. {0} is a valid empty one. */
struct str {
    char *s;
    size_t len, cap;
};
void str_add(struct str *t, const char *s);
void str_addn(struct str *t, const void *p, size_t n);
void str_addf(struct str *t, const char *fmt, ...) PRINTF(2, 3);
void str_clear(struct str *t);           /* empty, memory kept */
void str_release(struct str *t);         /* frees; leaves {0} */
char *str_take(struct str *t);           /* the text, owned by the caller; never NULL; leaves {0} */

/* A list of owned strings, v[n] == NULL when n > 0. {0} is a valid empty one. */
struct strv {
    char **v;
    size_t n, cap;
};
void strv_add(struct strv *l, const char *s);
void strv_take(struct strv *l, char *s); /* the same; s becomes the list's */
void strv_addf(struct strv *l, const char *fmt, ...) PRINTF(2, 3);
void strv_copy(struct strv *dst, const struct strv *src);
bool strv_has(const struct strv *l, const char *s);
void strv_split(struct strv *l, const char *s, const char *separators); /* empty elements are kept */
void strv_release(struct strv *l);

bool str_eq(const char *a, const char *b);  /* NULL equals NULL only */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* The candidate nearest to name by edit distance, or NULL if none is near (distance > 1 + len/3).
 * Candidates are read with stride bytes between the char pointers, so that a table of rows serves. */
/* "s" but for one: "%llu dataset%s" */
static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
const char *str_nearest(const char *name, const void *first, size_t stride, size_t n);
int str_to_i64(const char *s, int64_t *ret);   /* whole string, base 10; 0 or -1 */
int str_to_u64(const char *s, uint64_t *ret);
int str_to_double(const char *s, double *ret); /* C locale, whole string, finite */
int version_cmp(const char *a, const char *b); /* numeric by dotted parts: "12.10" > "12.9"; text parts by strcmp */
bool utf8_valid(const char *s, size_t n);
char *base64_encode(const void *p, size_t n);  /* owned by the caller */

/* One escaper per sink; the result is owned by the caller. */
char *esc_terminal(const char *s);  /* control and non-UTF-8 bytes as \xNN, so that no name drives a terminal */
char *esc_shell(const char *s);     /* 'single quoted', fit for sh */
char *esc_html(const char *s);

/* ---- names of enums -------------------------------------------------------------------------------- */

/* Tables of names end with name NULL. */
struct name {
    const char *name;
    int value;
};
const char *name_of(const struct name *table, int value);              /* NULL if none */
int name_value(const struct name *table, const char *name, int *ret);  /* 0 or -1 */

/* ---- environments ---------------------------------------------------------------------------------- */

/* The value of NAME in a list of NAME=VALUE strings ended by NULL, or NULL. */
const char *env_get(char *const *env, const char *name);
void env_set(struct strv *env, const char *name, const char *value); /* value NULL: unset */

/* ---- files ----------------------------------------------------------------------------------------- */

#define FILE_MAX_DEFAULT ((size_t)64 << 20)
/* Reads a whole regular file of at most max bytes, appending to ret. Never hangs on a FIFO or device and follows
 * no surprise: anything but a regular file is an error that names what it is.
 * CODE_IO; CODE_NOTFOUND when it does not exist; CODE_PERM when it may not be read. */
int file_read(const char *path, size_t max, struct str *ret, struct err *err);
int file_read_fd(int fd, const char *name, size_t max, struct str *ret, struct err *err);
/* Writes whole or not at all: a temporary file in the same folder, fsync, rename. The umask narrows the mode.
 * CODE_CREATE or CODE_IO. */
int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *err);
/* The same in two steps for content that is streamed; file_commit renames, file_abort removes. */
struct file_out {
    FILE *f;
    char *path, *tmp;
};
int file_open_out(struct file_out *o, const char *path, mode_t mode, struct err *err);
int file_commit(struct file_out *o, struct err *err);
void file_abort(struct file_out *o); /* also after a failed commit; safe on {0} */
/* Refused (CODE_PERM) when it or a parent is writable by others or owned by none of root, the user and trusted
 * (uids, -1 ends; may be NULL). A root-owned sticky parent passes; group-writable is refused only as root. */
int file_trusted(const char *path, const uid_t *trusted, struct err *err);
/* Whether dlopen may have it: a regular file (a FIFO would hang), a whole ELF shared object (a truncated one is SIGBUS) of
 * this program's machine. CODE_NODE, with the path and what it is instead. Device paths are opened without waiting. */
int object_check(const char *path, struct err *err);
int dir_make(const char *path, mode_t mode, struct err *err); /* with parents; existing is success */
int dir_remove(const char *path);                             /* a tree, never across a symlink; 0 or -1 */
char *path_join(const char *a, const char *b);   /* b absolute: b; owned by the caller */
char *path_absolute(const char *path);           /* lexical: cwd joined, "." and ".." and "//" removed */
char *path_dir(const char *path);                /* dirname, owned */
const char *path_base(const char *path);         /* after the last slash */
char *path_self(void);                           /* /proc/self/exe, resolved; NULL if unknown */
/* A part of recon by its place from this program's own: "lib/recon", "libexec/recon/recon-probe", ...
 * Works in an installation and in a build tree. Owned by the caller; not checked for existence. */
char *path_part(const char *relative);

/* Digest as it stands in files: "xxh3:" and 16 hex digits. */
#define DIGEST_SIZE 24
void digest_bytes(const void *p, size_t n, char ret[DIGEST_SIZE]);
int digest_file(const char *path, char ret[DIGEST_SIZE], struct err *err);

/* The path that this process asks the file system for, for the one that waits for it: after place_share() in a page that
 * children have in common with their parent; before it nothing happens. A path stays until the next one or NULL. */
void place_share(void);
void place_at(const char *path);
char *place_now(uint64_t *ret_steps); /* owned, NULL none; steps: how many were asked for so far */

/* ---- time ------------------------------------------------------------------------------------------ */

double clock_ms(void);                                /* monotonic */
void clock_iso(char ret[32]);                         /* now, UTC, "2026-11-30T14:03:11.482Z" */
int64_t clock_parse_iso(const char *s);               /* seconds since 1970, -1 if not such a time */

/* ---- children -------------------------------------------------------------------------------------- */

struct child {
    const char *const *argv; /* argv[0] is a path: no PATH search unless `search` */
    char *const *env;        /* NULL: an empty environment */
    const char *cwd;         /* NULL: as it is */
    double deadline_ms;      /* 0: none; after it the child's process group is killed */
    size_t max_output;       /* 0: 16 MiB */
    bool search;             /* look argv[0] up in PATH */
    struct str out, errout;  /* filled; release with str_release */
    int status;              /* as of waitpid */
    bool timed_out;
};
/* Runs a child in its own process group with /dev/null as input. -1 only when it could not be started
 * (CODE_NOTFOUND, CODE_NOEXEC) or ran past its deadline (CODE_DEADLINE). */
int child_run(struct child *c, struct err *err);

/* ---- terminal -------------------------------------------------------------------------------------- */

bool term_fancy(FILE *f); /* a terminal, TERM is not dumb, NO_COLOR is unset */
int term_width(FILE *f);  /* columns, 80 if unknown */

/* A table for people: cells are escaped for the terminal; a column of numbers is aligned right. */
struct table;
struct table *table_new(void);
void table_columns(struct table *t, const char *heads); /* "status|>vertices|>ms": '>' aligns right */
void table_row(struct table *t);
void table_cell(struct table *t, const char *fmt, ...) PRINTF(2, 3);
void table_print(const struct table *t, FILE *f);
void table_free(struct table *t);

/* A progress line on a terminal (else one plain line every ten seconds). */
struct progress;
struct progress *progress_new(FILE *f, const char *what);
void progress_set(struct progress *p, uint64_t done, uint64_t total, const char *fmt, ...) PRINTF(4, 5);
void progress_free(struct progress *p); /* clears the line */

char *human_bytes(uint64_t n, char buf[24]); /* "1.5 GiB"; returns buf */
char *human_ms(double ms, char buf[24]);     /* "84.2 ms", "3.1 s", "2 min 5 s"; returns buf */

#endif
