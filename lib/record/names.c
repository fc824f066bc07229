#include "config.h"
#include "record/record_priv.h"

#include <stdlib.h>
#include <xxhash.h>

/* hash is part of what decides the place and is compared first, so that a text is seldom looked at */
static struct names_slot *find(const struct names *l, uint32_t hash, const char *name)
{
    size_t i = hash & (l->cap - 1);

    while (l->slot[i].name && (l->slot[i].hash != hash || strcmp(l->slot[i].name, name)))
        i = (i + 1) & (l->cap - 1);
    return &l->slot[i];
}

static uint32_t hash_of(const char *name)
{
    return (uint32_t)XXH3_64bits(name, strlen(name));
}

struct names_slot *names_find(struct names *l, const char *name)
{
    return find(l, hash_of(name), name);
}

void names_put(struct names *l, struct names_slot *at, const char *name)
{
    at->name = name;
    at->hash = hash_of(name);
    at->next = 2;
    l->n++;
}

void names_room(struct names *l)
{
    struct names old = *l;

    if (l->cap && (l->n + 1) * 3 < l->cap * 2)
        return;
    l->cap = old.cap ? old.cap * 2 : 64;
    l->slot = xcalloc(l->cap, sizeof(*l->slot));
    for (size_t i = 0; i < old.cap; i++)
        if (old.slot[i].name) /* all differ, so that the first free place is it: no text is compared */
            *find(l, old.slot[i].hash, old.slot[i].name) = old.slot[i];
    free(old.slot);
}

void names_release(struct names *l)
{
    free(l->slot);
    *l = (struct names){ 0 };
}
