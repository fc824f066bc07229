/* An OBJ's bytes: cut into pieces at line ends, read in chunks of whole lines. What is read twice comes from the page cache, which
 * costs less than memory for the whole text: pages of it to clear, and both passes waiting for it. */
#include "config.h"
#include "data/obj.h"

#include <stdlib.h>

enum { CHUNK = 128 << 10, WINDOW = 16 << 10 };

/* *ret: behind the first line end from `want` on that joins no lines; from is a line's start before it */
static int find_cut(const struct obj *o, uint64_t from, uint64_t want, uint64_t *ret, struct fault *fault)
{
    char window[WINDOW];
    uint64_t at = want > from + 2 ? want - 2 : from; /* two bytes tell whether a newline joins */

    *ret = o->size;
    while (at < o->size) {
        uint64_t n = o->size - at < WINDOW ? o->size - at : WINDOW;

        if (data_pread(o->fd, o->path, window, n, at, fault))
            return -1;
        for (const char *p = window + (at < want ? want - at : 0), *end = window + n; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
            if (!obj_joined(window, p)) {
                *ret = at + (uint64_t)(p - window) + 1;
                return 0;
            }
        want = at + n; /* what was seen is not asked again */
        at = n == o->size - at ? o->size : at + n - 2;
    }
    return 0;
}

int obj_cut(struct obj *o, int threads, struct fault *fault)
{
    uint64_t most = o->size / 65536 + 1, from = 0;

    o->pieces = threads < 1 ? 1 : threads > OBJ_PIECES_MAX ? OBJ_PIECES_MAX : threads;
    o->pieces = (uint64_t)o->pieces > most ? (int)most : o->pieces;
    for (int i = 0; i < o->pieces; i++) {
        uint64_t want = o->size / (uint64_t)o->pieces * (uint64_t)(i + 1), to = o->size;

        if (i + 1 < o->pieces && find_cut(o, from, want > from ? want : from, &to, fault))
            return -1;
        o->piece[i] = (struct obj_piece){ .obj = o, .from = from, .to = to };
        from = to;
    }
    return 0;
}

/* behind the last line end of [p, end) that joins no lines; p: there is none */
static const char *last_line(const char *p, const char *end)
{
    while ((end = memrchr(p, '\n', (size_t)(end - p))))
        if (!obj_joined(p, end))
            return end + 1;
    return p;
}

static char *grow(struct obj_piece *c, char *buffer, uint64_t room)
{
    char *p = room > SIZE_MAX / 4 ? NULL : realloc(buffer, room + 2 * OBJ_PAD);

    if (!p)
        fault_set(&c->fault, CODE_MEMORY, NULL, "'%s': no memory for a line of more than %llu bytes", c->obj->path, (unsigned long long)room / 2);
    else if (!buffer)
        memset(p, 0, room + 2 * OBJ_PAD);
    return p;
}

void obj_chunks(struct obj_piece *c, bool (*lines)(struct obj_piece *c))
{
    uint64_t room = c->to - c->from < CHUNK ? c->to - c->from + 1 : CHUNK, have = 0, at = c->from;
    char *buffer = grow(c, NULL, room), *bigger;

    while (buffer && (at < c->to || have)) {
        char *text = buffer + OBJ_PAD;
        uint64_t n = c->to - at < room - have ? c->to - at : room - have;

        if (data_pread(c->obj->fd, c->obj->path, text + have, n, at, &c->fault))
            break;
        at += n;
        have += n;
        c->p = text;
        c->end = at == c->to ? text + have : last_line(text, text + have);
        if (c->end == text) { /* not one whole line */
            room *= 2;
            if (!(bigger = grow(c, buffer, room)))
                break;
            buffer = bigger;
            continue;
        }
        if (!lines(c))
            break;
        have -= (uint64_t)(c->end - text);
        memmove(text, c->end, have);
    }
    free(buffer);
}
