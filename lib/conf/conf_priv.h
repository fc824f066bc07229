/* What the files of lib/conf share. */
#ifndef RECON_CONF_PRIV_H
#define RECON_CONF_PRIV_H

#include <libconfig.h>
#include "conf/conf.h"

struct conf {
    config_t cfg;
    char *name;
};

static inline void *conf_at(const void *base, const struct conf_row *row)
{
    return (char *)(uintptr_t)base + row->offset;
}

/* A vector of structs as CONF_LIST rows see it: the element type is the row's. */
struct conf_list {
    char *v;
    size_t n, cap;
};

/* Shortest text that reads back as v, with a point so that it stays a float. */
#define CONF_FLOAT_TEXT 40
void conf_float_text(double v, char ret[CONF_FLOAT_TEXT]);

/* Refuses what libconfig would misread: NUL, @include, integers that wrap. */
int conf_scan(const char *text, size_t len, const char *name, struct err *err);

#endif
