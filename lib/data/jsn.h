/* data/jsn.h - inside lib/data: JSON (RFC 8259) as a tree over its text. The kernel modules are shared objects and jansson is
 * linked as an archive that cannot go into one; a GLB's header needs no more than this. Strings are compared as they are written. */
#ifndef DATA_JSN_H
#define DATA_JSN_H

#include "data/geom.h"

struct jsn; /* the whole tree */
/* A value: 0 is none, 1 the outermost. All questions to none are answered by none, 0, false. */
typedef uint32_t jsn_at;

/* text must outlive the tree. NULL: no JSON, *ret_where then says from which byte; deeper than 128 is none. */
struct jsn *jsn_parse(const char *text, uint64_t n, uint64_t *ret_where);
void jsn_free(struct jsn *j); /* NULL is fine */
jsn_at jsn_key(const struct jsn *j, jsn_at object, const char *key); /* the first of the name */
jsn_at jsn_item(const struct jsn *j, jsn_at array, uint64_t i);
uint64_t jsn_items(const struct jsn *j, jsn_at array);
bool jsn_object(const struct jsn *j, jsn_at v);
bool jsn_array(const struct jsn *j, jsn_at v);
bool jsn_true(const struct jsn *j, jsn_at v);
bool jsn_number(const struct jsn *j, jsn_at v, double *ret);
bool jsn_whole(const struct jsn *j, jsn_at v, uint64_t *ret); /* digits alone, below 10^18 */
const char *jsn_raw(const struct jsn *j, jsn_at v, size_t *ret_n);                       /* as it stands, quotes too; "" for none */
const char *jsn_name(const struct jsn *j, jsn_at object, uint64_t i, size_t *ret_n);      /* of member i, as it stands; NULL: no more */
/* A string on one line: escapes resolved, control characters as '_'. Owned; NULL: no string. */
char *jsn_line(const struct jsn *j, jsn_at v);
void jsn_add_text(struct str *t, const char *s); /* as a JSON string; bytes that are no UTF-8 as '?' */
char *jsn_text(const struct jsn *j, jsn_at v);                /* as written between the quotes, owned; NULL: no string */

#endif
