/* Makes mc_tables.h: `make lib/kernels/test/mc_gen && lib/kernels/test/mc_gen > lib/kernels/mc_tables.h`; a
 * unit test holds the header against this output.
 *
 * Corner c of a cell stands at (c & 1, c >> 1 & 1, c >> 2 & 1) of x, y, z. Edge e = 4 * axis + q: q's two
 * bits are its place on the two other axes, lower axis first. Face f = 2 * axis + side. On each face the
 * surface is drawn as directed segments from where the walk around the face (counter-clockwise seen from
 * outside the cell) leaves the inside to where it enters it. A face with its inside corners on a diagonal can
 * be drawn in two ways, and both cells of a face must take the same one: one bit a face. The segments of the
 * six faces close to loops, and each loop is triangulated without a diagonal that lies in a face, since the
 * neighbour may draw that too and the edge would then have four triangles. A loop where this cannot be done
 * gets a vertex at its centre. */
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CENTRE = 12, MAX_LOOP = 12, FORBIDDEN = 1000000 };

static int edge_of(int a, int b)
{
    int axis = (a ^ b) == 1 ? 0 : (a ^ b) == 2 ? 1 : 2, low = a & b;
    int first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;

    return axis * 4 + (low >> first & 1) + 2 * (low >> second & 1);
}

static void edge_ends(int e, int *a, int *b)
{
    int axis = e / 4, first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;

    *a = (e & 1) << first | (e >> 1 & 1) << second;
    *b = *a | 1 << axis;
}

static void face_corners(int f, int out[4])
{
    int axis = f / 2, side = f & 1, u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3, base = side << axis;
    int ccw[4] = { base, base | u, base | u | v, base | v };

    for (int i = 0; i < 4; i++)
        out[i] = side ? ccw[i] : ccw[3 - i];
}

static int on_face(int e, int f)
{
    int a, b;

    edge_ends(e, &a, &b);
    return (a >> f / 2 & 1) == (f & 1) && (b >> f / 2 & 1) == (f & 1);
}

static int ambiguous(int code, int f)
{
    int c[4];

    face_corners(f, c);
    return (code >> c[0] & 1) == (code >> c[2] & 1) && (code >> c[1] & 1) == (code >> c[3] & 1) &&
           (code >> c[0] & 1) != (code >> c[1] & 1);
}

/* next[e]: where the segment that starts on edge e ends */
static void face_segments(int code, int f, int joined, int next[12])
{
    int c[4], in[4], edge[4];

    face_corners(f, c);
    for (int i = 0; i < 4; i++) {
        in[i] = code >> c[i] & 1;
        edge[i] = edge_of(c[i], c[(i + 1) % 4]);
    }
    for (int i = 0; i < 4; i++) {
        int leave = in[i] && !in[(i + 1) % 4];

        if (!leave)
            continue;
        for (int k = 1; k <= 4;
             k++) { /* joined: on to the next entering edge; separate: back around the own run */
            int j = joined ? (i + k) % 4 : (i - k + 4) % 4;

            if (!in[j] && in[(j + 1) % 4]) {
                next[edge[i]] = edge[j];
                break;
            }
        }
    }
}

static double weight(int a, int b)
{
    int p, q, r, s;
    double d = 0;

    for (int f = 0; f < 6; f++)
        if (on_face(a, f) && on_face(b, f))
            return FORBIDDEN;
    edge_ends(a, &p, &q);
    edge_ends(b, &r, &s);
    for (int k = 0; k < 3; k++) {
        double x = ((p >> k & 1) + (q >> k & 1) - (r >> k & 1) - (s >> k & 1)) / 2.0;
        d += x * x;
    }
    return sqrt(d);
}

static void split(int cut[MAX_LOOP][MAX_LOOP], const int *loop, int i, int j, int out[][3], int *n)
{
    int k = cut[i][j];

    if (j - i < 2)
        return;
    split(cut, loop, i, k, out, n);
    out[*n][0] = loop[i];
    out[*n][1] = loop[k];
    out[*n][2] = loop[j];
    ++*n;
    split(cut, loop, k, j, out, n);
}

/* the triangulation with the shortest sum of diagonals; gives whether a centre was needed */
static int triangulate(const int *loop, int len, int out[][3], int *n)
{
    double best[MAX_LOOP][MAX_LOOP] = { { 0 } };
    int cut[MAX_LOOP][MAX_LOOP] = { { 0 } };

    for (int d = 2; d < len; d++)
        for (int i = 0; i + d < len; i++) {
            int j = i + d;

            best[i][j] = 1e18;
            for (int k = i + 1; k < j; k++) {
                double w = best[i][k] + best[k][j] + (k - i > 1 ? weight(loop[i], loop[k]) : 0) +
                           (j - k > 1 ? weight(loop[k], loop[j]) : 0);
                if (w < best[i][j] - 1e-9) {
                    best[i][j] = w;
                    cut[i][j] = k;
                }
            }
        }
    if (best[0][len - 1] < FORBIDDEN) {
        split(cut, loop, 0, len - 1, out, n);
        return 0;
    }
    for (int i = 0; i < len; i++, ++*n) {
        out[*n][0] = loop[i];
        out[*n][1] = loop[(i + 1) % len];
        out[*n][2] = CENTRE;
    }
    return 1;
}

struct entry {
    int first, count, centre; /* centre: bits of the edges around it */
};

static int make(int code, int faces, struct entry *e, int out[][3])
{
    int next[12], n = 0, done = 0;

    memset(next, -1, sizeof(next));
    e->centre = 0;
    for (int f = 0; f < 6; f++)
        face_segments(code, f, faces >> f & 1, next);
    for (int s = 0; s < 12; s++) {
        int loop[MAX_LOOP], len = 0, bits = 0;

        if (next[s] < 0 || done >> s & 1)
            continue;
        for (int v = s; !(done >> v & 1); v = next[v]) {
            done |= 1 << v;
            bits |= 1 << v;
            loop[len++] = v;
        }
        if (triangulate(loop, len, out, &n)) {
            if (e->centre)
                return -1; /* two centres in a cell: never seen, the tables have room for one */
            e->centre = bits;
        }
    }
    return n;
}

int main(void)
{
    static int tri[20000][3];
    static struct entry entries[2000];
    int n = 0, ntri = 0, first[257], mask[256], most = 0;

    for (int code = 0; code < 256; code++) {
        int amb[6], na = 0;

        first[code] = n;
        mask[code] = 0;
        for (int f = 0; f < 6; f++)
            if (ambiguous(code, f)) {
                amb[na++] = f;
                mask[code] |= 1 << f;
            }
        for (int bits = 0; bits < 1 << na; bits++, n++) {
            int faces = 0;

            for (int i = 0; i < na; i++)
                faces |= (bits >> i & 1) << amb[i];
            entries[n].first = ntri;
            entries[n].count = make(code, faces, &entries[n], tri + ntri);
            if (entries[n].count < 0)
                return 1;
            if (entries[n].count > most)
                most = entries[n].count;
            ntri += entries[n].count;
        }
    }
    printf(
        "/* kernels/mc_tables.h - made by test/mc_gen.c, which says how; do not edit. C11, C++ and CUDA. */\n"
        "#ifndef KERNELS_MC_TABLES_H\n#define KERNELS_MC_TABLES_H\n#include <stdint.h>\n\n"
        "#ifdef __CUDACC__\n#define MC_TABLE static __device__ const\n#else\n#define MC_TABLE static "
        "const\n"
        "#endif\n\n#define MC_ENTRIES %d\n#define MC_TRIANGLES %d\n#define MC_MOST %d /* triangles of a cell "
        "*/\n"
        "#define MC_CENTRE %d /* the vertex at the centre of a loop */\n\n",
        n, ntri, most, CENTRE);
    printf("/* Ambiguous faces of a case, a bit each. */\nMC_TABLE uint8_t mc_ambiguous[256] = {");
    for (int i = 0; i < 256; i++)
        printf("%s%d,", i % 24 ? " " : "\n    ", mask[i]);
    printf("\n};\n/* First entry of a case; the entry is this plus the decisions of its ambiguous faces, "
           "lowest face "
           "first:\n * bit 1 where the inside corners are joined. */\nMC_TABLE uint16_t mc_first[256] = {");
    for (int i = 0; i < 256; i++)
        printf("%s%d,", i % 20 ? " " : "\n    ", first[i]);
    printf("\n};\n/* Triangles of entry e: mc_triangle[3 * mc_offset[e]] to mc_triangle[3 * mc_offset[e + "
           "1]]. */\n"
           "MC_TABLE uint16_t mc_offset[MC_ENTRIES + 1] = {");
    for (int i = 0; i < n; i++)
        printf("%s%d,", i % 16 ? " " : "\n    ", entries[i].first);
    printf(" %d,\n};\n/* Edges whose mean is the centre vertex, a bit each; 0: the entry has none. */\n"
           "MC_TABLE uint16_t mc_centre[MC_ENTRIES] = {",
           ntri);
    for (int i = 0; i < n; i++)
        printf("%s%d,", i % 16 ? " " : "\n    ", entries[i].centre);
    printf("\n};\n/* Edges, three a triangle, counter-clockwise seen from outside. */\n"
           "MC_TABLE uint8_t mc_triangle[3 * MC_TRIANGLES] = {");
    for (int i = 0; i < 3 * ntri; i++)
        printf("%s%d,", i % 26 ? " " : "\n    ", tri[i / 3][(3 - i % 3) % 3]); /* turned to face outwards */
    printf("\n};\n#endif\n");
    return 0;
}
