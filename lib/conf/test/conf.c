#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "conf/conf.h"

struct item {
    char *name;
    int64_t size;
    int line;
};
struct thing {
    int64_t version;
    char *title;
    double scale;
    bool on;
    int level;
    struct strv words;
    struct conf_floats bounds;
    struct conf_ints ids;
    struct {
        char *inner;
    } group;
    struct {
        struct item *v;
        size_t n, cap;
    } items;
    struct conf_map map;
};

static const struct name levels[] = { { "low", 0 }, { "high", 1 }, { NULL, 0 } };
static const struct conf_row group_rows[] = {
    { .name = "inner", .type = CONF_TEXT, .offset = 0 },
    { 0 },
};
static const struct conf_row item_rows[] = {
    { .name = "name", .type = CONF_TEXT, .offset = offsetof(struct item, name) },
    { .name = "", .type = CONF_LINE, .offset = offsetof(struct item, line), .flags = CONF_HIDDEN },
    { .name = "size", .type = CONF_INT, .offset = offsetof(struct item, size) },
    { 0 },
};
static const struct conf_row rows[] = {
    { .name = "version", .type = CONF_INT, .offset = offsetof(struct thing, version), .flags = CONF_REQUIRED },
    { .name = "title", .type = CONF_TEXT, .offset = offsetof(struct thing, title), .def = "none" },
    { .name = "scale", .type = CONF_FLOAT, .offset = offsetof(struct thing, scale) },
    { .name = "on", .type = CONF_BOOL, .offset = offsetof(struct thing, on) },
    { .name = "level", .type = CONF_CHOICE, .offset = offsetof(struct thing, level), .names = levels, .def = "low" },
    { .name = "words", .type = CONF_TEXTS, .offset = offsetof(struct thing, words) },
    { .name = "bounds", .type = CONF_FLOATS, .offset = offsetof(struct thing, bounds) },
    { .name = "ids", .type = CONF_INTS, .offset = offsetof(struct thing, ids) },
    { .name = "group", .type = CONF_GROUP, .offset = offsetof(struct thing, group), .sub = group_rows },
    { .name = "items", .type = CONF_LIST, .offset = offsetof(struct thing, items), .sub = item_rows,
      .size = sizeof(struct item) },
    { .name = "map", .type = CONF_MAP, .offset = offsetof(struct thing, map) },
    { 0 },
};

static const char whole[] =
    "version = 1; title = \"a \\\"b\\\"\"; scale = 2; on = true; level = \"high\"; words = [ \"x\", \"y\" ];\n"
    "bounds = ( -2.8, 3 ); ids = [ 1, 2 ]; group = { inner = \"i\"; };\n"
    "items = ( { name = \"big\"; size = 5000000000L; }, { name = \"none\"; } );\n"
    "map = { voxel = 0.01; flag = true; fuse = { n = 3; bounds = ( 1, 2.5 ); }; };\n";

static struct conf *parse(const char *text, struct err *err)
{
    return conf_parse(text, strlen(text), "t.conf", err);
}

static void check_whole(const struct thing *t)
{
    assert_int_equal(t->version, 1);
    assert_string_equal(t->title, "a \"b\"");
    assert_true(t->scale == 2.0);
    assert_true(t->on);
    assert_int_equal(t->level, 1);
    assert_int_equal(t->words.n, 2);
    assert_int_equal(t->bounds.n, 2);
    assert_true(t->bounds.v[0] == -2.8);
    assert_int_equal(t->ids.v[1], 2);
    assert_string_equal(t->group.inner, "i");
    assert_int_equal(t->items.n, 2);
    assert_int_equal(t->items.v[0].size, 5000000000);
    assert_in_range(t->items.v[0].line, 1, 20);
    assert_int_equal(t->items.v[1].size, CONF_UNSET);
    assert_string_equal(conf_map_get(&t->map, "fuse.n"), "3");
    assert_string_equal(conf_map_get(&t->map, "fuse.bounds"), "1, 2.5");
    assert_string_equal(conf_map_get(&t->map, "flag"), "true");
}

static void test_round_trip(void **state)
{
    struct err e = { 0 };
    struct thing t = { 0 };
    struct str text = { 0 };
    struct conf *c = parse(whole, &e);

    (void)state;
    assert_non_null(c);
    assert_int_equal(conf_bind(c, rows, &t, &e), 0);
    check_whole(&t);
    conf_write(rows, &t, &text);
    conf_free(c);
    conf_release(rows, &t);
    c = parse(text.s, &e); /* nested map groups of one name come once each here */
    if (!c)
        fail_msg("%s in:\n%s", e.text, text.s);
    assert_int_equal(conf_bind(c, rows, &t, &e), 0);
    check_whole(&t);
    conf_free(c);
    conf_release(rows, &t);
    str_release(&text);
}

static void test_errors(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "version = 1;\ntitel = \"x\";", "t.conf:2: unknown key 'titel', the nearest is 'title'" },
        { "version = 1; items = ( { nam = \"x\"; } );", "unknown key 'nam', the nearest is 'name'" },
        { "title = \"x\";", "'version' is missing" },
        { "version = \"x\";", "'version' wants an integer" },
        { "version = 1;\nlevel = \"mid\";", "t.conf:2: 'level' wants one of: low, high" },
        { "version = 3000000000;", "t.conf:1: 3000000000 needs the suffix L: write 3000000000L" },
        { "version = 1;\n@include \"/dev/zero\"\n", "t.conf:2: '@include' is not taken" },
        { "version = ;", "t.conf:1: " },
        { "version = 1; group = 3;", "'group' wants a group" },
        { "version = 1; items = ( 3 );", "'items' wants a list of groups" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err e = { 0 };
        struct thing t = { 0 };
        struct conf *c = parse(cases[i].text, &e);

        if (c)
            assert_int_equal(conf_bind(c, rows, &t, &e), -1);
        if (!strstr(e.text, cases[i].wanted))
            fail_msg("'%s' gave '%s'", cases[i].text, e.text);
        assert_int_equal(e.code, CODE_USAGE);
        if (c)
            conf_release(rows, &t);
        conf_free(c);
    }
}

static void test_scan_lets_pass(void **state)
{
    static const char *const good[] = {
        "version = 1; title = \"@include 3000000000\"; # 3000000000 @x\n",
        "version = 1; /* 9999999999 */ scale = 3000000000.5;",
        "version = 3000000000L;",
        "version = 1; scale = 1e-12;",
        "version = 1; map = { a-b = 1; x2 = -2147483648; };",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct err e = { 0 };
        struct conf *c = parse(good[i], &e);

        if (!c)
            fail_msg("%s: %s", good[i], e.text);
        conf_free(c);
    }
}

static void test_layers(void **state)
{
    struct err e = { 0 };
    struct thing t = { 0 };
    struct conf *c = parse("version = 1; title = \"site\"; words = [ \"a\", \"b\" ]; map = { x = 1; y = 1; };", &e);
    struct conf *over = parse("title = \"user\"; words = [ \"c\" ]; map = { y = 2; };", &e);

    (void)state;
    assert_int_equal(conf_check(over, rows, &e), 0); /* a layer may lack required keys */
    conf_merge(c, over);
    assert_int_equal(conf_assign(c, "map.z=0.5", &e), 0);
    assert_int_equal(conf_assign(c, "group.inner=two words; \"quoted\"", &e), 0);
    assert_int_equal(conf_assign(c, "novalue", &e), -1);
    assert_int_equal(conf_assign(c, "a b=1", &e), -1);
    assert_int_equal(conf_bind(c, rows, &t, &e), 0);
    assert_string_equal(t.title, "user");
    assert_int_equal(t.words.n, 1);
    assert_string_equal(conf_map_get(&t.map, "x"), "1");
    assert_string_equal(conf_map_get(&t.map, "y"), "2");
    assert_string_equal(conf_map_get(&t.map, "z"), "0.5");
    assert_string_equal(t.group.inner, "two words; \"quoted\"");
    conf_release(rows, &t);
    conf_free(c);
    conf_free(over);
}

static void test_absent(void **state)
{
    struct err e = { 0 };
    struct thing t = { 0 };
    struct str text = { 0 };
    struct conf *c = parse("version = 1;", &e);

    (void)state;
    assert_int_equal(conf_bind(c, rows, &t, &e), 0);
    assert_true(isnan(t.scale));
    assert_string_equal(t.title, "none");
    conf_write(rows, &t, &text);
    assert_null(strstr(text.s, "scale"));
    assert_null(strstr(text.s, "items"));
    conf_release(rows, &t);
    conf_free(c);
    str_clear(&text);
    conf_document(rows, &text);
    assert_non_null(strstr(text.s, "| `items[].size` | integer |"));
    str_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_errors), cmocka_unit_test(test_scan_lets_pass),
        cmocka_unit_test(test_layers),     cmocka_unit_test(test_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
