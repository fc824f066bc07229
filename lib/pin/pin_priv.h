/* pin/pin_priv.h - what the files of lib/pin share. */
#ifndef RECON_PIN_PRIV_H
#define RECON_PIN_PRIV_H

#include "pin/pin.h"

struct pin_object *pin_add_object(struct pin *p); /* with the rows' defaults */

/* Of the environment and the host (here.c). reusable: everything resolved, so the search may be spared later. */
void pin_add_variables(struct pin *p, const struct pin_request *r);
void pin_add_setting(struct pin *p, char *const *env);
void pin_add_host(struct pin *p);
void pin_add_loader(struct pin *p, const char *path, const struct loader *l, bool reusable);

/* The loader of facts (NULL, or silent about it: this host's, or by table for another root). */
void loader_of(const struct facts *f, const char *root, struct loader *ret);
/* l, or where the program wants another loader of this host that is root's or the user's: that one, in *scratch. */
const struct loader *loader_for(const struct loader *l, const char *program, struct loader *scratch);

/* Fills ret->drivers and driver_file where anything may want a driver; p may be NULL. */
void resolve_driver(struct resolution *r, const struct pin *p, const char *root);
/* Fills ret->shadows, by PYTHONPATH and the working directory. */
void resolve_shadows(struct resolution *r, const char *root);

void resolution_symbol_release(struct resolution_symbol *x);
/* Unchanged since the pin: fills ret->closures from the pin and gives true. */
bool resolution_reuse(const struct pin *p, const struct facts *f, const struct loader *l, struct resolution *ret);

#endif
