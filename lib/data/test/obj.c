/* The ways in which lines of an OBJ are read: the same numbers, the same meshes, the same refusals. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "data/test/meshes.h"
#include "data/obj.h"

/* usual lines and others: numbers of every length, ends and separators of every kind */
static void obj_quick_lines(void **state)
{
    enum { N = 3000 };
    static const char *const ends[] = { "\n", "\r\n", " \n", " # c\n", "\t\n" }, *const gaps[] = { " ", "  ", "\t", " \\\n" };
    static float want[3 * N];
    static uint32_t face[3 * N];
    struct str t = { 0 };
    uint32_t seed = 11;
    struct mesh_notes notes;
    struct fault fault;

    (void)state;
    for (int i = 0; i < N; i++) {
        str_add(&t, "v");
        for (int a = 0; a < 3; a++) {
            char word[80];
            double v;

            seed = seed * 1664525 + 1013904223;
            v = ((double)seed / (1u << 31) - 1) * pow(10, (int)(seed >> 8) % 9 - 4);
            snprintf(word, sizeof(word), seed >> 16 & 31 ? "%.*f" : "%.*e", (int)(seed >> 24) % 21, v);
            want[3 * i + a] = (float)strtod(word, NULL);
            str_addf(&t, "%s%s", seed % 7 && a ? " " : gaps[a ? seed % 4 : 0], word);
        }
        str_add(&t, ends[seed % 3 ? 0 : seed % 5]);
        if (i >= 2) {
            for (int a = 0; a < 3; a++) {
                seed = seed * 1664525 + 1013904223;
                face[3 * i + a] = (seed >> 8) % N;
            }
            str_addf(&t, i % 50 ? "f %u %u %u%s" : "f  %u %u\t%u%s", face[3 * i] + 1, face[3 * i + 1] + 1, face[3 * i + 2] + 1, ends[i % 5 ? 0 : i % 4]);
        }
    }
    for (int threads = 1; threads < 6; threads++) {
        struct recon_mesh m;

        assert_int_equal(read_bytes("quick.obj", t.s, t.len, threads, &m, &notes, &fault), 0);
        assert_int_equal(m.vertices, N);
        assert_int_equal(m.faces, N - 2);
        assert_memory_equal(m.xyz, want, sizeof(want));
        assert_memory_equal(m.index, face + 6, (N - 2) * 12);
        drop(&m);
    }
    str_add(&t, "f 1 2 3001\n");
    for (int i = 0; i < 40; i++)
        str_add(&t, "f 1 2 3\n");
    {
        struct recon_mesh m;
        char line[40];
        int lines = 1;

        for (const char *p = t.s; p < strstr(t.s, "f 1 2 3001"); p++)
            lines += *p == '\n';
        snprintf(line, sizeof(line), "line %d: index 3001", lines);
        assert_int_equal(read_bytes("quick.obj", t.s, t.len, 2, &m, &notes, &fault), -1);
        assert_non_null(strstr(fault.err.text, line));
    }
    str_release(&t);
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* a number as people and programs write them */
static void random_number(uint32_t *seed, char word[64])
{
    uint32_t kind = next(seed) % 16, before = next(seed) % 8, behind = next(seed) % (kind < 12 ? 10 : 19);
    char *p = word;

    if (next(seed) % 3 == 0)
        *p++ = '-';
    else if (kind == 15)
        *p++ = '+';
    before += before + behind == 0;
    for (uint32_t i = 0; i < before; i++)
        *p++ = (char)('0' + next(seed) % 10);
    if (behind || next(seed) % 8 == 0)
        *p++ = '.';
    for (uint32_t i = 0; i < behind; i++)
        *p++ = (char)('0' + next(seed) % 10);
    p += kind == 14 ? sprintf(p, "%c%d", next(seed) % 2 ? 'e' : 'E', (int)(next(seed) % 40) - 20) : 0;
    *p = 0;
}

/* Every number becomes the float next to it, as by strtod, whichever way its line takes. */
static void obj_numbers(void **state)
{
    enum { N = 40000 };
    const struct obj_quick *quick[] = { &obj_plain, obj_wide() };
    float *want = xmalloc(3 * N * sizeof(float));
    struct str t = { 0 };
    uint32_t seed = 5;
    struct mesh_notes notes;
    struct fault fault = { 0 };
    char *path;

    (void)state;
    for (int i = 0; i < 3 * N; i++) {
        char word[64];

        random_number(&seed, word);
        want[i] = (float)strtod(word, NULL);
        str_addf(&t, "%s%s%s", i % 3 ? " " : "v ", word, i % 3 == 2 ? "\n" : "");
    }
    str_add(&t, "f 1 2 3\n");
    path = put("numbers.obj", t.s, t.len);
    for (size_t k = 0; k < COUNT(quick) && quick[k]; k++)
        for (int threads = 1; threads < 4; threads++) {
            struct recon_mesh m;

            if (obj_parse_by(quick[k], path, &(struct geom_options){ .threads = threads }, &data_malloc, &m, &notes, &fault))
                fail_msg("%s", fault.err.text);
            assert_int_equal(m.vertices, N);
            assert_memory_equal(m.xyz, want, 3 * N * sizeof(float));
            drop(&m);
        }
    free(want);
    free(path);
    str_release(&t);
}

/* a line that is longer than any chunk, alone and joined from many */
static void obj_long_lines(void **state)
{
    enum { N = 60000 };
    (void)state;
    for (int joined = 0; joined < 2; joined++) {
        struct str t = { 0 };
        struct mesh_notes notes;
        struct fault fault;
        struct recon_mesh m;

        for (int i = 0; i < N; i++)
            str_addf(&t, "v %d 0 0\n", i);
        str_add(&t, "f");
        for (int i = 0; i < N; i++)
            str_addf(&t, joined && i % 10 == 0 ? " %d\\\n" : " %d", i + 1);
        str_add(&t, "\nf 3 2 1\n");
        for (int threads = 1; threads < 5; threads++) {
            if (read_bytes("long.obj", t.s, t.len, threads, &m, &notes, &fault))
                fail_msg("%s", fault.err.text);
            assert_int_equal(m.faces, N - 1);
            assert_int_equal(m.index[3 * (N - 3) + 2], N - 1);
            assert_int_equal(m.index[3 * (N - 2)], 2);
            assert_true(m.joined[N - 3] == 1 && m.joined[N - 2] == 0);
            drop(&m);
        }
        str_release(&t);
    }
}

static char *changing;
static void change_after_counting(struct obj_piece *c, const char **p)
{
    FILE *f = fopen(changing, "r+");

    obj_plain.count(c, p);
    assert_non_null(f);
    fputs("v 9 9 9\nvt 1 1\nvn 0 0 1\nf 1 2 3 4\n", f);
    assert_int_equal(fclose(f), 0);
}

/* a file that another writes between the passes: nothing is written beyond what was counted, and what stands there then is read */
static void obj_changes(void **state)
{
    static const char text[] = "#       \n#      \n#       \n#        \n" TRIANGLE "vt 0 0\nf 1/1 2/1 3/1\n";
    const struct obj_quick quick = { change_after_counting, obj_plain.read };
    struct mesh_notes notes = { 0 };
    struct fault fault = { 0 };
    struct recon_mesh m;

    (void)state;
    changing = put("changing.obj", BYTES(text));
    if (obj_parse_by(&quick, changing, &(struct geom_options){ .threads = 1 }, &data_malloc, &m, &notes, &fault))
        fail_msg("%s", fault.err.text);
    assert_true(m.vertices == 4 && m.faces == 3 && m.uvs == 2 && m.xyz[0] == 9);
    drop(&m);
    free(changing);
}

/* ---- random files ---- */

static void add_number(struct str *t, uint32_t *seed)
{
    static const int digits[] = { 0, 3, 6, 9, 16 };
    int n = digits[next(seed) % COUNT(digits)];
    double v = (double)next(seed) / 3e7 - 0.2;

    if (next(seed) % 8)
        str_addf(t, "%.*f", n, v);
    else
        str_addf(t, "%.*e", n, v);
}

static void add_gap(struct str *t, uint32_t *seed)
{
    static const char *const gaps[] = { "  ", "\t", " \\\n", " \\\r\n " };
    uint32_t i = next(seed) % 60;

    str_add(t, i < COUNT(gaps) ? gaps[i] : " ");
}

static void add_end(struct str *t, uint32_t *seed)
{
    static const char *const ends[] = { " # c\n", "\r\n", " \n", "\n\n", "\n# comment \\\n joined\n", "\n  \n" };
    uint32_t i = next(seed) % 50;

    str_add(t, i < COUNT(ends) ? ends[i] : "\n");
}

/* what stands before: vertices, texture coordinates, normals */
static void add_face(struct str *t, uint32_t *seed, const uint32_t n[3])
{
    uint32_t corners = 3 + (next(seed) % 6 ? 0 : next(seed) % 3) + (next(seed) % 400 ? 0 : next(seed) % 5000);

    str_add(t, "f");
    for (uint32_t i = 0; i < corners; i++) {
        uint32_t form = next(seed) % 4;

        add_gap(t, seed);
        str_addf(t, next(seed) % 50 ? "%u" : "-%u", next(seed) % n[0] + 1);
        if (form & 1 && n[1])
            str_addf(t, "/%u", next(seed) % n[1] + 1);
        if (form & 2 && n[2])
            str_addf(t, "%s/%u", form & 1 && n[1] ? "" : "/", next(seed) % n[2] + 1);
    }
    add_end(t, seed);
}

static void add_line(struct str *t, uint32_t *seed, uint32_t kinds, uint32_t n[3])
{
    static const char *const words[] = { "v", "vt", "vn" };
    uint32_t kind = n[0] < 5 ? 0 : next(seed) % 12;

    str_add(t, next(seed) % 97 ? "" : " ");
    if (kind == 5) {
        str_addf(t, next(seed) % 2 ? "usemtl m%u" : "g a%u", next(seed) % 5);
        add_end(t, seed);
    } else if (kind == 6 && next(seed) % 4 == 0) {
        str_add(t, next(seed) % 2 ? "l 1 2\n" : "# a comment that is longer than any block of bytes that is looked at at once: more than 64\n");
    } else if (kind < 3 && kind <= kinds) {
        str_add(t, words[kind]);
        for (int i = 0; i < (kind == 1 && next(seed) % 9 ? 2 : 3); i++) {
            add_gap(t, seed);
            add_number(t, seed);
        }
        n[kind]++;
        add_end(t, seed);
    } else {
        add_face(t, seed, n);
    }
}

static bool same_meshes(struct recon_mesh *a, struct recon_mesh *b)
{
    struct recon_array p[RECON_ARRAYS_MAX], q[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(RECON_MESH, a, p);

    recon_slot_arrays(RECON_MESH, b, q);
    while (n-- > 0)
        if (p[n].bytes != q[n].bytes || (p[n].bytes && memcmp(*p[n].at, *q[n].at, p[n].bytes)))
            return false;
    return a->vertices == b->vertices && a->faces == b->faces;
}

/* Any file is the same mesh, or refused in the same words, whichever way its lines are read and by however many threads. */
static void obj_random(void **state)
{
    const struct obj_quick *quick[] = { &obj_plain, obj_wide() };

    (void)state;
    for (uint32_t round = 0; round < 24; round++) {
        struct mesh_notes notes = { 0 };
        struct fault fault = { 0 };
        struct recon_mesh m = { 0 };
        struct str t = { 0 };
        uint32_t seed = round * 7919 + 1, n[3] = { 0 };
        char *path;
        int rc;

        while (t.len < 20000 * (round + 1))
            add_line(&t, &seed, round % 3, n);
        if (round % 4 == 3)
            t.s[next(&seed) % t.len] = "x9 /\n#\\"[next(&seed) % 7];
        path = put("random.obj", t.s, t.len);
        rc = obj_parse_by(&obj_plain, path, &(struct geom_options){ .threads = 1 }, &data_malloc, &m, &notes, &fault);
        for (int i = 0; i < 10; i++) {
            struct mesh_notes now = { 0 };
            struct fault f = { 0 };
            struct recon_mesh b = { 0 };

            if (!quick[i % 2])
                continue;
            assert_int_equal(obj_parse_by(quick[i % 2], path, &(struct geom_options){ .threads = 1 + i / 2 }, &data_malloc, &b, &now, &f), rc);
            assert_string_equal(f.err.text, fault.err.text);
            assert_true(rc || (same_meshes(&m, &b) && memcmp(&now, &notes, sizeof(now)) == 0));
            drop(&b);
        }
        drop(&m);
        free(path);
        str_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(obj_quick_lines),
        cmocka_unit_test(obj_numbers),
        cmocka_unit_test(obj_long_lines),
        cmocka_unit_test(obj_changes),
        cmocka_unit_test(obj_random),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
