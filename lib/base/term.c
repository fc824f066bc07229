#include "config.h"
#include "base/base.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

bool term_fancy(FILE *f)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(fileno(f)) && term && *term && !str_eq(term, "dumb") && !(no && *no);
}

int term_width(FILE *f)
{
    struct winsize w;

    return ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

/* ---- tables ---- */

struct row {
    struct strv cells;
};

struct table {
    struct strv heads;
    bool *right;
    struct {
        struct row *v;
        size_t n, cap;
    } rows;
};

struct table *table_new(void)
{
    return xcalloc(1, sizeof(struct table));
}

void table_columns(struct table *t, const char *heads)
{
    struct strv parts = { 0 };

    strv_split(&parts, heads, "|");
    t->right = xcalloc(parts.n, sizeof(bool));
    for (size_t i = 0; i < parts.n; i++) {
        t->right[i] = parts.v[i][0] == '>';
        strv_add(&t->heads, parts.v[i] + t->right[i]);
    }
    strv_release(&parts);
}

void table_row(struct table *t)
{
    VEC_ADD(&t->rows);
}

void table_cell(struct table *t, const char *fmt, ...)
{
    char *text = NULL, *safe;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = xstrdup("");
    va_end(ap);
    safe = esc_terminal(text);
    strv_add(&t->rows.v[t->rows.n - 1].cells, safe);
    free(safe);
    free(text);
}

/* Columns that a text takes: one per code point, which holds for the names that recon prints. */
static size_t width_of(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void line(const struct table *t, const struct strv *cells, const size_t *width, FILE *f)
{
    for (size_t i = 0; i < cells->n && i < t->heads.n; i++) {
        int pad = (int)(width[i] - width_of(cells->v[i]));
        bool last = i + 1 == t->heads.n;

        fprintf(f, "%s%*s%s%*s", i ? "  " : "", t->right[i] ? pad : 0, "", cells->v[i],
                t->right[i] || last ? 0 : pad, "");
    }
    fputc('\n', f);
}

void table_print(const struct table *t, FILE *f)
{
    size_t *width = xcalloc(t->heads.n, sizeof(size_t));

    for (size_t i = 0; i < t->heads.n; i++) {
        width[i] = width_of(t->heads.v[i]);
        for (size_t r = 0; r < t->rows.n; r++)
            if (i < t->rows.v[r].cells.n && width_of(t->rows.v[r].cells.v[i]) > width[i])
                width[i] = width_of(t->rows.v[r].cells.v[i]);
    }
    line(t, &t->heads, width, f);
    for (size_t r = 0; r < t->rows.n; r++)
        line(t, &t->rows.v[r].cells, width, f);
    free(width);
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t r = 0; r < t->rows.n; r++)
        strv_release(&t->rows.v[r].cells);
    free(t->rows.v);
    strv_release(&t->heads);
    free(t->right);
    free(t);
}

/* ---- progress ---- */

struct progress {
    FILE *f;
    char *what;
    bool fancy;
    double last;
};

struct progress *progress_new(FILE *f, const char *what)
{
    struct progress *p = xcalloc(1, sizeof(*p));

    p->f = f;
    p->what = esc_terminal(what);
    p->fancy = term_fancy(f);
    p->last = p->fancy ? 0 : clock_ms();
    return p;
}

void progress_set(struct progress *p, uint64_t done, uint64_t total, const char *fmt, ...)
{
    enum { BAR = 24 };
    char text[200], bar[BAR + 1];
    double now = clock_ms();
    int filled = total ? (int)(done * BAR / total) : 0;
    va_list ap;

    if (now - p->last < (p->fancy ? 100 : 10000) && !(p->fancy && done == total))
        return;
    p->last = now;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = 0;
    if (p->fancy)
        fprintf(p->f, "\r\033[K%s [%s] %llu/%llu %.*s", p->what, bar, (unsigned long long)done,
                (unsigned long long)total, term_width(p->f) - BAR - 24 - (int)strlen(p->what), text);
    else
        fprintf(p->f, "%s %llu/%llu %s\n", p->what, (unsigned long long)done, (unsigned long long)total, text);
    fflush(p->f);
}

void progress_free(struct progress *p)
{
    if (!p)
        return;
    if (p->fancy)
        fputs("\r\033[K", p->f);
    free(p->what);
    free(p);
}

char *human_bytes(uint64_t n, char buf[24])
{
    static const char units[] = "KMGTPE";
    double v = (double)n;
    int u = -1;

    if (n < 1024) {
        snprintf(buf, 16, "%d B", (int)n);
        return buf;
    }
    for (; v >= 1024 && u < 5; u++)
        v /= 1024;
    snprintf(buf, 16, "%.1f %ciB", v, units[u]);
    return buf;
}

char *human_ms(double ms, char buf[24])
{
    if (ms < 1000)
        snprintf(buf, 16, "%.1f ms", ms);
    else if (ms < 60000)
        snprintf(buf, 16, "%.2f s", ms / 1000);
    else
        snprintf(buf, 24, "%d min %d s", (int)(ms / 60000) % 100000, (int)(ms / 1000) % 60);
    return buf;
}
