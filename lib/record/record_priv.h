/* record_priv.h - inside lib/record: one JSON line, appending it, a file of them, parsers over memory (also for fuzzing). */
#ifndef RECON_RECORD_PRIV_H
#define RECON_RECORD_PRIV_H

#include "record/record.h"

struct json_t; /* jansson's */

#define RECORD_VERSION 1
#define RECORD_FILE_MAX ((size_t)4 << 30)

/* ---- json.c ---- */

/* {"v":1,"type":TYPE}; the put_ functions append keys in order. Text that is no UTF-8 has its bad bytes as \xNN. */
struct json_t *line_new(const char *type);
void put_text(struct json_t *o, const char *key, const char *s);  /* NULL: nothing */
void put_text_or_null(struct json_t *o, const char *key, const char *s);
void put_texts(struct json_t *o, const char *key, const struct strv *l);
void put_true(struct json_t *o, const char *key);
void put_bytes(struct json_t *o, const char *key, const char *s); /* exact: under KEY_b64 when it is no UTF-8 */
void put_u64(struct json_t *o, const char *key, uint64_t v);
void put_int(struct json_t *o, const char *key, int64_t v);
void put_real(struct json_t *o, const char *key, double v, int per); /* rounded to 1/per; not finite: null */
void put_ms(struct json_t *o, const char *key, double ms);
void line_end(struct json_t *o, struct str *ret); /* appends it with a newline and frees it */
void str_quoted(struct str *t, const char *s, size_t n); /* a JSON string; s is UTF-8 */

const char *get_text(const struct json_t *o, const char *key); /* NULL unless a string */
char *get_bytes(const struct json_t *o, const char *key);      /* KEY or KEY_b64; owned, NULL if absent or damaged */
uint64_t get_u64(const struct json_t *o, const char *key);     /* 0 if absent, negative or no number */
int get_int(const struct json_t *o, const char *key);          /* 0 if absent or no number; held within int's range */
double get_real(const struct json_t *o, const char *key, double absent);
char *value_text(const struct json_t *value); /* of any value; NULL for null */
bool value_is_number(const char *s); /* its text comes back unchanged when it is written as a JSON number */
char *base64_decode(const char *s);  /* owned; NULL: no base64, or a NUL in it */

/* ---- finding.c ---- */

void finding_keys(struct json_t *o, const struct finding *f);

/* ---- append.c ---- */

/* One write(2); the rest of a short write follows; a failure leaves no part of it. 0 or errno. */
int write_line(int fd, const char *s, size_t n);
void cut_torn(int fd); /* cuts a last line without its newline off a regular file that can be read */
/* For files of many writers: under a lock where the file system has one. */
int append_line(const char *path, const struct str *line, struct err *err);

typedef int line_f(void *arg, struct json_t *o, size_t no, struct err *err);
/* Every line of a text as an object with "v":1. *torn: the last one has no newline (it is left out). */
int lines_each(const char *s, size_t n, const char *name, bool *torn, line_f *call, void *arg, struct err *err);
/* The same for a file; one that does not exist has no lines. */
int file_lines(const char *path, line_f *call, void *arg, struct err *err);

/* ---- names.c ---- */

/* A set of names; they are not copied. */
struct names {
    struct names_slot {
        const char *name;
        uint32_t next; /* the number to try next for a copy of it */
        uint32_t hash;
    } *slot;
    size_t cap, n;
};
struct names_slot *names_find(struct names *l, const char *name); /* its slot, or the free one with name NULL */
void names_put(struct names *l, struct names_slot *at, const char *name);
void names_room(struct names *l); /* for one more; moves the slots */
void names_release(struct names *l);

/* ---- dataset.c ---- */

int dataset_from(const struct json_t *o, struct dataset *ret, struct err *err);
void dataset_line(const struct dataset *d, struct str *ret);
int dataset_put(struct dataset *d, char *key, char *value, struct err *err); /* takes both; name and path are known */

/* ---- parsers over memory ---- */

int datasets_parse(const char *s, size_t n, const char *name, const char *dir, struct datasets *ret, struct err *err);
int events_parse(const char *s, size_t n, const char *name, struct events_read *ret, struct err *err);

/* ---- columns.c ---- */

int columns_write(const struct run *r, const struct datasets *l, struct err *err); /* nothing when there are none */

/* ---- result.c ---- */

#define RESULT_FILE "recon.json"
char *result_dir(const struct run *r, uint64_t dataset);
int result_read(const char *dir, uint64_t dataset, struct result *ret, struct err *err);
enum result_state result_judge(const char *dir, uint64_t dataset, const char *pin, const char *pipeline, bool deep,
                               struct err *err);
void result_files_release(struct result *x);

/* ---- run.c ---- */

struct run {
    char *path;
    int lines, index;
    uint64_t n;
    mode_t mode; /* of files: the run directory's, as umask left it */
};
char *run_file(const struct run *r, const char *fmt, ...) PRINTF(2, 3);
int run_numbers(const char *dir, uint32_t **ret, size_t *ret_n, struct err *err); /* names that are numbers, sorted */

#endif
