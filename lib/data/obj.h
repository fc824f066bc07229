/* data/obj.h - inside lib/data: the parts of the OBJ reader. The file is cut at line ends into one piece a thread; a first pass
 * counts, so that the second knows where its numbers go and what a negative index means. Each pass reads its piece from the file
 * in chunks that stay in the processor's cache (obj_chunks.c). Usual lines take a quick way of their own (obj_quick.c,
 * obj_wide.c), all others the general one (obj_line.c), which alone knows of faults. */
#ifndef DATA_OBJ_H
#define DATA_OBJ_H

#include "data/extra.h"
#include "data/geom.h"

enum { OBJ_PIECES_MAX = 64 };

struct obj_counts {
    uint64_t v, vt, vn, f, tri, lines; /* f: faces, of at least one triangle each */
};

/* A line with words for the faces behind it, until the whole file is read: "usemtl", "o", "g", "s", "mtllib". */
enum obj_words { WORDS_MATERIAL, WORDS_OBJECT, WORDS_GROUP, WORDS_SMOOTH, WORDS_LIBRARY };
struct obj_word {
    uint64_t face, line;
    char *text;
    uint32_t n, kind; /* n: bytes, of which a NUL may be one */
};

struct obj_piece {
    struct obj *obj;
    uint64_t from, to;      /* bytes of the file */
    const char *p, *end;    /* the chunk: whole lines */
    struct obj_counts n;    /* counted */
    struct obj_counts at;   /* what stands before the line being read; lines from 1 */
    struct obj_counts stop; /* at, behind the last line */
    uint64_t polygons;      /* faces of more than three corners */
    uint64_t uv_bad;        /* texture coordinates outside 0 to 1 */
    uint64_t other, other_line; /* lines of other kinds: how many, the first */
    bool slashes;           /* corners of the last usual face had some */
    bool same_normals;      /* every corner names the normal of its vertex's number */
    bool controls;          /* a control character that is no blank is in it, which usual lines have not */
    bool seen_v, seen_f;    /* a line of the kind, whose first says: */
    bool colored, paired;   /* a vertex has a colour; each corner has a normal, of its vertex's number */
    struct {
        struct obj_word *v;
        size_t n, cap;
    } words;
    struct fault fault;
};

struct obj {
    const char *path;
    int fd;
    uint64_t size;
    const double *offset; /* off x, y, z */
    const struct obj_quick *quick;
    bool plain;           /* places, normals of vertices and faces alone */
    struct recon_mesh mesh;
    struct obj_counts all;
    struct obj_piece piece[OBJ_PIECES_MAX];
    int pieces;
};

/* Both take lines of the chunk from *p on as long as they are usual ones, and move it behind the last taken. OBJ_PAD bytes before
 * and behind the chunk are readable. */
enum { OBJ_PAD = 64 };
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
/* What the first vertex and the first face say, into the piece. */
void obj_see_vertex(struct obj_piece *c, const char *line);
void obj_see_face(struct obj_piece *c, const char *line);

/* The file cut into pieces: 0, or -1 with fault. obj_chunks.c */
int obj_cut(struct obj *o, int threads, struct fault *fault);
/* Each chunk of the piece in turn, as c->p and c->end; ends early when lines() gives false. A failure becomes the piece's fault. */
void obj_chunks(struct obj_piece *c, bool (*lines)(struct obj_piece *c));

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
