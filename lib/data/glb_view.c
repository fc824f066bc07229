/* Numbers of a GLB: accessors over views of its buffer. */
#include "config.h"
#include "data/glb.h"

#include <stdlib.h>

int glb_bad(const struct glb *g, const char *fmt, ...)
{
    char what[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return fault_set(g->fault, CODE_DATA, NULL, "'%s': %s", g->path, what);
}

bool glb_whole(const struct glb *g, jsn_at o, const char *key, uint64_t def, uint64_t *ret)
{
    jsn_at v = jsn_key(g->j, o, key);

    *ret = def;
    return !v || jsn_whole(g->j, v, ret);
}

jsn_at glb_item(const struct glb *g, const char *list, uint64_t i)
{
    return jsn_item(g->j, jsn_key(g->j, GLB_ROOT, list), i);
}

static int components(const struct glb *g, jsn_at type)
{
    static const struct name names[] = { { "SCALAR", 1 }, { "VEC2", 2 }, { "VEC3", 3 }, { "VEC4", 4 }, { NULL, 0 } };
    char *text = jsn_text(g->j, type);
    int n = 0;

    if (!text || name_value(names, text, &n))
        n = 0;
    free(text);
    return n;
}

static int size_of(int type)
{
    return type == GLB_BYTE ? 1 : type == GLB_SHORT ? 2 : type == GLB_INT || type == GLB_FLOAT ? 4 : 0;
}

int glb_bytes(const struct glb *g, uint64_t view, const char **ret, uint64_t *ret_n, uint64_t *ret_step)
{
    jsn_at b = glb_item(g, "bufferViews", view);
    uint64_t from, bytes, buffer;

    if (!jsn_object(g->j, b) || !glb_whole(g, b, "buffer", 0, &buffer) || !glb_whole(g, b, "byteOffset", 0, &from) ||
        !glb_whole(g, b, "byteLength", 0, &bytes) || !glb_whole(g, b, "byteStride", 0, ret_step))
        return glb_bad(g, "bufferView %llu is none", (unsigned long long)view);
    if (buffer != 0 || jsn_key(g->j, glb_item(g, "buffers", 0), "uri"))
        return glb_bad(g, "bufferView %llu lies in another file, one GLB is wanted", (unsigned long long)view);
    if (from > g->bin_n || bytes > g->bin_n - from)
        return fault_set(g->fault, CODE_DATA, "file-truncated", "'%s': bufferView %llu of %llu bytes does not fit the %llu bytes of its buffer", g->path,
                         (unsigned long long)view, (unsigned long long)bytes, (unsigned long long)g->bin_n);
    *ret = g->bin ? g->bin + from : NULL; /* no chunk: no bytes, as checked above */
    *ret_n = bytes;
    return 0;
}

int glb_accessor(const struct glb *g, uint64_t number, struct glb_view *ret)
{
    jsn_at a = glb_item(g, "accessors", number);
    uint64_t at, bytes, step, type, view, each;
    struct glb_view v;
    const char *p;

    if (!jsn_object(g->j, a) || !glb_whole(g, a, "bufferView", UINT64_MAX, &view) || !glb_whole(g, a, "byteOffset", 0, &at) ||
        !glb_whole(g, a, "componentType", 0, &type) || !glb_whole(g, a, "count", 0, &v.count))
        return glb_bad(g, "accessor %llu is none", (unsigned long long)number);
    if (jsn_key(g->j, a, "sparse") || view == UINT64_MAX)
        return glb_bad(g, "accessor %llu is sparse, which is not read", (unsigned long long)number);
    v.type = type <= GLB_FLOAT ? (int)type : 0;
    v.n = components(g, jsn_key(g->j, a, "type"));
    v.normalized = jsn_true(g->j, jsn_key(g->j, a, "normalized"));
    if (glb_bytes(g, view, &p, &bytes, &step))
        return -1;
    if (!size_of(v.type) || !v.n)
        return glb_bad(g, "accessor %llu is none", (unsigned long long)number);
    each = (uint64_t)size_of(v.type) * (uint64_t)v.n;
    v.step = step ? step : each;
    if (at > bytes || v.step < each || v.step > 65536 || (v.count && (v.count - 1 > bytes / v.step || (v.count - 1) * v.step + each > bytes - at)))
        return fault_set(g->fault, CODE_DATA, "file-truncated", "'%s': accessor %llu of %llu vectors does not fit the %llu bytes of its view", g->path,
                         (unsigned long long)number, (unsigned long long)v.count, (unsigned long long)bytes);
    v.p = p ? p + at : NULL;
    *ret = v;
    return 0;
}

double glb_component(const struct glb_view *v, uint64_t i, int k)
{
    const char *p = v->p + i * v->step + (uint64_t)(k * size_of(v->type));
    uint16_t s;
    uint32_t u;
    float f;

    switch (v->type) {
    case GLB_BYTE:
        return (uint8_t)*p;
    case GLB_SHORT:
        memcpy(&s, p, 2);
        return s;
    case GLB_INT:
        memcpy(&u, p, 4);
        return u;
    default:
        memcpy(&f, p, 4);
        return (double)f;
    }
}

void glb_lose(struct glb *g, const char *what, size_t n)
{
    char *copy = n < 64 && g->lost.n < 32 ? xstrndup(what, n) : NULL;

    if (copy && !strv_has(&g->lost, copy))
        strv_add(&g->lost, copy);
    free(copy);
}
