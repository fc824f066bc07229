#include "config.h"
#include "record/record_priv.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* ---- writing ---- */

static void set(json_t *o, const char *key, json_t *value)
{
    if (json_object_set_new(o, key, value))
        xmalloc(SIZE_MAX); /* only memory can fail here: ends the process as memory does everywhere */
}

json_t *line_new(const char *type)
{
    json_t *o = json_object();

    if (!o)
        xmalloc(SIZE_MAX);
    set(o, "v", json_integer(RECORD_VERSION));
    set(o, "type", json_string(type));
    return o;
}

/* s is not NULL. */
static json_t *text_of(const char *s)
{
    char *safe = utf8_valid(s, strlen(s)) ? NULL : esc_terminal(s);
    json_t *v = json_string(safe ? safe : s);

    free(safe);
    return v;
}

void put_text(json_t *o, const char *key, const char *s)
{
    if (s)
        set(o, key, text_of(s));
}

void put_texts(json_t *o, const char *key, const struct strv *l)
{
    json_t *array = json_array();

    for (size_t i = 0; i < l->n; i++)
        if (json_array_append_new(array, text_of(l->v[i])))
            xmalloc(SIZE_MAX);
    set(o, key, array);
}

void put_true(json_t *o, const char *key)
{
    set(o, key, json_true());
}

void put_text_or_null(json_t *o, const char *key, const char *s)
{
    if (s)
        put_text(o, key, s);
    else
        set(o, key, json_null());
}

void put_bytes(json_t *o, const char *key, const char *s)
{
    char *b64, *key_b64;

    if (!s || utf8_valid(s, strlen(s))) {
        put_text(o, key, s);
        return;
    }
    b64 = base64_encode(s, strlen(s));
    key_b64 = xasprintf("%s_b64", key);
    set(o, key_b64, json_string(b64));
    free(key_b64);
    free(b64);
}

void put_u64(json_t *o, const char *key, uint64_t v)
{
    set(o, key, json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v));
}

void put_int(json_t *o, const char *key, int64_t v)
{
    set(o, key, json_integer(v));
}

void put_real(json_t *o, const char *key, double v, int per)
{
    if (fabs(v) < 1e12) /* rounded without libm */
        v = (double)(int64_t)(v * per + (v < 0 ? -0.5 : 0.5)) / per;
    set(o, key, isfinite(v) ? json_real(v) : json_null());
}

void put_ms(json_t *o, const char *key, double ms)
{
    put_real(o, key, ms, 1000);
}

static int add_block(const char *s, size_t n, void *to)
{
    str_addn(to, s, n);
    return 0;
}

void line_end(json_t *o, struct str *ret)
{
    if (json_dump_callback(o, add_block, ret, JSON_COMPACT | JSON_REAL_PRECISION(15)))
        xmalloc(SIZE_MAX);
    str_add(ret, "\n");
    json_decref(o);
}

/* True if a JSON string holds it as it is: most names and paths, of which a list may have a million. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

void str_quoted(struct str *t, const char *s, size_t n)
{
    json_t *v;

    if (is_plain(s, n)) {
        str_addn(t, "\"", 1);
        str_addn(t, s, n);
        str_addn(t, "\"", 1);
        return;
    }
    v = json_stringn(s, n);

    if (!v || json_dump_callback(v, add_block, t, JSON_ENCODE_ANY))
        xmalloc(SIZE_MAX);
    json_decref(v);
}

/* ---- reading ---- */

const char *get_text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

char *get_bytes(const json_t *o, const char *key)
{
    const char *s = get_text(o, key);
    char *key_b64, *ret;

    if (s)
        return xstrdup(s);
    key_b64 = xasprintf("%s_b64", key);
    s = get_text(o, key_b64);
    free(key_b64);
    ret = s ? base64_decode(s) : NULL;
    return ret;
}

uint64_t get_u64(const json_t *o, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(o, key));

    return v > 0 ? (uint64_t)v : 0;
}

int get_int(const json_t *o, const char *key)
{
    double v = get_real(o, key, 0);

    return v <= INT_MIN ? INT_MIN : v >= INT_MAX ? INT_MAX : (int)v;
}

double get_real(const json_t *o, const char *key, double absent)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : absent;
}

/* The shortest text that reads back as v, with a point whatever the locale. */
static void real_text(double v, char ret[32])
{
    for (int digits = 15; digits <= 17; digits++) {
        char *comma;
        double back;

        snprintf(ret, 32, "%.*g", digits, v);
        if ((comma = strchr(ret, ',')))
            *comma = '.';
        if (str_to_double(ret, &back) == 0 && back == v)
            return;
    }
}

char *value_text(const json_t *value)
{
    char number[32], *dump, *ret;

    switch (json_typeof(value)) {
    case JSON_NULL:
        return NULL;
    case JSON_STRING:
        return xstrdup(json_string_value(value));
    case JSON_TRUE:
    case JSON_FALSE:
        return xstrdup(json_is_true(value) ? "true" : "false");
    case JSON_INTEGER:
        return xasprintf("%lld", (long long)json_integer_value(value));
    case JSON_REAL:
        real_text(json_real_value(value), number);
        return xstrdup(number);
    default:
        dump = json_dumps(value, JSON_COMPACT);
        ret = xstrdup(dump ? dump : "");
        free(dump);
        return ret;
    }
}

bool value_is_number(const char *s)
{
    char back[32];
    int64_t i;
    double v;

    if (str_to_i64(s, &i) == 0) {
        snprintf(back, sizeof(back), "%lld", (long long)i);
        return strcmp(s, back) == 0;
    }
    if (str_to_double(s, &v) || !s[strcspn(s, ".e")])
        return false;
    real_text(v, back);
    return strcmp(s, back) == 0;
}

static int sextet(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

char *base64_decode(const char *s)
{
    size_t n = strlen(s), pad = 0;
    struct str t = { 0 };

    while (pad < 2 && pad < n && s[n - 1 - pad] == '=')
        pad++;
    if (n % 4)
        return NULL;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t word = 0;
        size_t bytes = i + 4 == n ? 3 - pad : 3;

        for (size_t k = 0; k < 4; k++) {
            int v = i + k >= n - pad ? 0 : sextet(s[i + k]);

            if (v < 0)
                goto bad;
            word = word << 6 | (uint32_t)v;
        }
        for (size_t k = 0; k < bytes; k++) {
            char c = (char)(word >> (16 - 8 * k));

            if (!c)
                goto bad;
            str_addn(&t, &c, 1);
        }
    }
    return str_take(&t);
bad:
    str_release(&t);
    return NULL;
}
