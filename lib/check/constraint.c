/* Slurm's constraints. Source: sbatch(1), --constraint; src/slurmctld/node_scheduler.c takes the words one after the other,
 * so that & binds no tighter than |. */
#include "config.h"
#include "check/preflight_priv.h"

#include <ctype.h>
#include <stdlib.h>

struct reader {
    const char *at;
    const struct strv *features;
    bool any; /* within brackets with counts */
    int depth;
};

static bool word_char(char c)
{
    return c && !strchr("&|,*()[]!", c) && !isspace((unsigned char)c);
}

static int read_all(struct reader *r, char close);

/* "*2" after a word or a group: how many nodes, which is not one node's matter. */
static int skip_count(struct reader *r)
{
    if (*r->at != '*')
        return 0;
    r->at++;
    if (!isdigit((unsigned char)*r->at))
        return -1;
    while (isdigit((unsigned char)*r->at))
        r->at++;
    return 0;
}

static int read_group(struct reader *r, char close)
{
    bool any = r->any;
    const char *end = strchr(r->at, close), *star = strchr(r->at, '*');
    int fits;

    if (!end || ++r->depth > 8)
        return -1;
    r->at++;
    r->any = any || (close == ']' && star && star < end);
    fits = read_all(r, close);
    r->any = any;
    r->depth--;
    if (fits < 0 || *r->at != close)
        return -1;
    r->at++;
    return skip_count(r) ? -1 : fits;
}

static int read_one(struct reader *r)
{
    const char *from = r->at;
    char *word;
    int fits;

    if (*r->at == '(' || *r->at == '[')
        return read_group(r, *r->at == '(' ? ')' : ']');
    while (word_char(*r->at))
        r->at++;
    if (r->at == from)
        return -1;
    word = xstrndup(from, (size_t)(r->at - from));
    fits = strv_has(r->features, word);
    free(word);
    return skip_count(r) ? -1 : fits;
}

/* Up to close, which is left; 0: the end. */
static int read_all(struct reader *r, char close)
{
    int fits = read_one(r);

    while (fits >= 0 && *r->at && *r->at != close) {
        char op = *r->at++;
        int next;

        if (!strchr("&,|", op))
            return -1;
        next = read_one(r);
        if (next < 0)
            return -1;
        fits = op == '|' || r->any ? fits || next : fits && next;
    }
    return fits;
}

int constraint_fits(const char *text, const struct strv *features)
{
    struct reader r = { .at = text, .features = features };
    int fits = read_all(&r, 0);

    return *r.at ? -1 : fits;
}

void constraint_words(const char *text, struct strv *ret)
{
    while (*text) {
        const char *from = text;
        char *word;

        while (word_char(*text))
            text++;
        word = xstrndup(from, (size_t)(text - from));
        if (*word && !strv_has(ret, word))
            strv_add(ret, word);
        free(word);
        if (*text == '*')
            text += 1 + strspn(text + 1, "0123456789");
        else if (*text)
            text++;
    }
}
