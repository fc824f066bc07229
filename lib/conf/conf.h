/* conf/conf.h - libconfig files read, written, merged and documented through one table of rows.
 *
 * A row is one key: name, type, place in a struct, default, words. The same rows read a file (conf_bind), refuse
 * unknown keys with file, line and the nearest name (conf_check), write the file again (conf_write) and print its
 * reference (conf_document). The struct is plain C; an absent key leaves the row's default, or CONF_UNSET (integers),
 * NaN (floats), NULL (texts), so that a reader can tell "absent" from any value; conf_write leaves absent keys out.
 *
 * Files are read whole with a size bound and never from a FIFO; `@include` is refused; so is an integer beyond 2^31
 * without `L`, which libconfig 1.5 would wrap silently. Errors are CODE_USAGE and say "FILE:LINE: ...".
 */
#ifndef RECON_CONF_H
#define RECON_CONF_H

#include "base/base.h"

#define CONF_UNSET INT64_MIN

enum conf_type {
    CONF_TEXT,   /* char *, owned */
    CONF_INT,    /* int64_t; CONF_UNSET when absent */
    CONF_FLOAT,  /* double, integers are taken; NaN when absent */
    CONF_BOOL,   /* bool; false when absent and no default */
    CONF_CHOICE, /* int, by the row's table of names; the default is a name, -1 when absent and no default */
    CONF_TEXTS,  /* struct strv, [ "a", "b" ] or ( ); a single text is taken as a list of one */
    CONF_INTS,   /* struct conf_ints */
    CONF_FLOATS, /* struct conf_floats, ( 1, 2.5 ) */
    CONF_GROUP,  /* a struct in place, the row's sub rows */
    CONF_LIST,   /* struct { T *v; size_t n, cap; } of groups: ( { }, { } ); the row's sub rows, size = sizeof(T) */
    CONF_MAP,    /* struct conf_map: a group whose keys are free; nested groups give dotted names */
    CONF_LINE,   /* int: the line that its group begins on (for messages); named "", hidden, never in a file */
    CONF_ANY,    /* accepted and not stored (a key that another reader takes) */
};

struct conf_ints {
    int64_t *v;
    size_t n, cap;
};
struct conf_floats {
    double *v;
    size_t n, cap;
};

/* One entry of a CONF_MAP. Lists become their elements joined by ", ". line 0: not from a file. */
enum conf_kind { CONF_KIND_TEXT, CONF_KIND_INT, CONF_KIND_FLOAT, CONF_KIND_BOOL, CONF_KIND_LIST };
struct conf_pair {
    char *name, *value;
    enum conf_kind kind;
    int line;
};
struct conf_map {
    struct conf_pair *v;
    size_t n, cap;
};
const char *conf_map_get(const struct conf_map *m, const char *name); /* NULL if absent */
void conf_map_set(struct conf_map *m, const char *name, const char *value, enum conf_kind kind);
void conf_map_release(struct conf_map *m);

#define CONF_REQUIRED 1u /* absent is an error */
#define CONF_HIDDEN 2u   /* not in the reference */

struct conf_row {
    const char *name;             /* NULL ends a table */
    enum conf_type type;
    size_t offset;                /* offsetof(struct x, member) */
    const char *def;              /* default as text, NULL: absent */
    const char *doc;              /* one sentence for the reference */
    unsigned flags;
    const struct conf_row *sub;   /* CONF_GROUP, CONF_LIST */
    size_t size;                  /* CONF_LIST: of one element */
    const struct name *names;     /* CONF_CHOICE */
};

/* A parsed text, or several merged. */
struct conf;
struct conf *conf_parse(const char *text, size_t len, const char *name, struct err *err); /* name: for messages */
struct conf *conf_load(const char *path, struct err *err);
struct conf *conf_new(const char *name); /* empty, to merge into or set */
void conf_free(struct conf *c);

/* Lays `over` upon c: groups merge, everything else is replaced. over is unchanged. */
void conf_merge(struct conf *c, const struct conf *over);
/* "a.b=value": value as libconfig would read it (0.5, true, ( 1, 2 ), "x"), else as text. */
int conf_assign(struct conf *c, const char *assignment, struct err *err);

/* Unknown keys and wrong types, without storing anything. */
int conf_check(const struct conf *c, const struct conf_row *rows, struct err *err);
/* Defaults, then the file's values. dst is initialised even on failure, so conf_release is always right. */
int conf_bind(const struct conf *c, const struct conf_row *rows, void *dst, struct err *err);
void conf_defaults(const struct conf_row *rows, void *dst);
void conf_release(const struct conf_row *rows, void *dst);
/* Appends libconfig text: one top-level key a line, in the order of the rows. */
void conf_write(const struct conf_row *rows, const void *src, struct str *ret);
/* Appends a Markdown table: key, type, default, meaning. */
void conf_document(const struct conf_row *rows, struct str *ret);

#endif
