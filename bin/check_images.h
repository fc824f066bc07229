/* check_images.h - recon-check --images FILE: the GPU code that a file holds. */
#ifndef RECON_CHECK_IMAGES_H
#define RECON_CHECK_IMAGES_H

#include "base/base.h"

/* A row for each distinct set of images that containers have, as rules judge them; with each every container as it is stored,
 * link stubs and relocatable ones too. Gives the exit status. */
int check_images(const char *path, bool each, bool jsonl);

#endif
