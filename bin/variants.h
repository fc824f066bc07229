/* variants.h - a pin with several bodies: judged one after another, the most specific for the node first, until one has no
 * error. */
#ifndef RECON_VARIANTS_H
#define RECON_VARIANTS_H

#include "check/check.h"

struct variants {
    const struct pin *pin;
    const char *root;            /* as for resolve */
    char *const *env;            /* what the body's variables are replayed on */
    const struct facts *given;   /* as for resolve; NULL: this host's loader is asked */
    struct check_case c;         /* facts, received, elsewhere, restored; pin and resolution are filled in */
    const struct strv *skip;
    /* Looks up the symbols that are to be judged; NULL: none. */
    void (*symbols)(struct resolution *r, const struct pin *body, const char *root, const struct strv *places);
};
/* Gives the index of the body that is taken (pin_body): the first without error, else the first that another node may run, else
 * the most specific. ret_resolution and ret are that body's; of a pin with variants a note "variant" tells which it is, and one
 * for each that was judged before it why it was not taken. */
size_t variants_judge(const struct variants *v, struct resolution *ret_resolution, struct findings *ret);

#endif
