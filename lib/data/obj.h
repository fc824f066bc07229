/* data/obj.h - inside lib/data: the parts of the OBJ reader. The text is cut at line ends into one piece a thread; a first pass
 * counts (obj_count), so that the second (obj_read) knows where its numbers go and what a negative index means. Usual lines
 * take a quick way of their own (obj_quick.c, obj_wide.c), all others the general one (obj_line.c), which alone knows of faults. */
#ifndef DATA_OBJ_H
#define DATA_OBJ_H

#include "data/extra.h"
#include "data/geom.h"

enum { OBJ_PIECES_MAX = 64 };

struct obj_counts {
    uint64_t v, vt, vn, tri, lines;
    uint64_t polygons; /* of more than three corners */
};

/* A line with words for the faces behind it, until the whole file is read: "usemtl", "o", "g", "s", "mtllib". */
enum obj_words { WORDS_MATERIAL, WORDS_OBJECT, WORDS_GROUP, WORDS_SMOOTH, WORDS_LIBRARY };
struct obj_word {
    uint64_t face, line;
    const char *p;
    uint32_t n, kind;
};

struct obj_piece {
    struct obj *obj;
    const char *p, *end;
    struct obj_counts n;    /* counted */
    struct obj_counts at;   /* what stands before the line being read; lines from 1 */
    struct obj_counts stop; /* at, behind the last line */
    uint64_t uv_bad;        /* texture coordinates outside 0 to 1 */
    uint64_t other, other_line; /* lines of other kinds: how many, the first */
    bool same_normals;      /* every corner names the normal of its vertex's number */
    const char *first_v, *first_f; /* the first line of the kind, NULL: none */
    struct {
        struct obj_word *v;
        size_t n, cap;
    } words;
    struct fault fault;
};

struct obj {
    const char *path;
    const double *offset; /* off x, y, z */
    const struct obj_quick *quick;
    bool plain;           /* places, normals of vertices and faces alone */
    struct recon_mesh mesh;
    struct obj_counts all;
    struct obj_piece piece[OBJ_PIECES_MAX];
    int pieces;
};

/* Both take lines from *p on as long as they are usual ones, and move it behind the last taken. At least 16 bytes before a line
 * and 64 behind its end must be readable (load_file sees to it). */
struct obj_quick {
    void (*count)(struct obj_piece *c, const char **p);
    void (*read)(struct obj_piece *c, const char **p);
};
extern const struct obj_quick obj_plain; /* for any processor */
const struct obj_quick *obj_wide(void);  /* for one with AVX2, NULL on others */

/* The general way, a line and those joined to it by a backslash: gives its end, the newline or the piece's end. */
const char *obj_count_line(struct obj_piece *c, const char *p);
const char *obj_read_line(struct obj_piece *c, const char *p); /* NULL with the piece's fault */
bool obj_joined(const char *from, const char *newline);        /* whether a backslash stands before the newline */
/* Of a vertex's line: it has a colour; of a face's: each corner has a normal, of its vertex's number. */
bool obj_colored(const char *line, const char *end);
bool obj_paired(const char *line, const char *end);

/* A triangle; false when more come than were counted. Numbers from 0, RECON_NONE for none. */
static inline bool obj_put_triangle(struct obj_piece *c, const uint32_t v[3], const uint32_t vt[3], const uint32_t vn[3], bool joined)
{
    struct recon_mesh *m = &c->obj->mesh;
    uint64_t f = c->at.tri;

    if (f == c->stop.tri)
        return false;
    memcpy(m->index + 3 * f, v, 12);
    if (m->uv_index)
        memcpy(m->uv_index + 3 * f, vt, 12);
    if (m->normal_index)
        memcpy(m->normal_index + 3 * f, vn, 12);
    if (m->joined)
        m->joined[f] = joined;
    c->at.tri++;
    return true;
}

/* The words of all pieces into names, materials and marks; libraries are read. obj_words.c */
int obj_take_words(struct obj *o, const struct geom_options *options, struct extra *e, struct mesh_notes *notes, struct fault *fault);

#endif
