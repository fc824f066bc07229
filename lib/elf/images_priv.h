/* elf/images_priv.h - GPU images while a file is searched for them. */
#ifndef RECON_IMAGES_PRIV_H
#define RECON_IMAGES_PRIV_H

#include "elf/elf_priv.h"

struct scan {
    struct reader *r;
    struct gpu_images *out;
    unsigned toolkit;       /* highest, 130 for 13.0 */
    bool relocatable;
};
/* CUDA containers in size bytes at off (images.c). */
void scan_region(struct scan *s, uint64_t off, uint64_t size, bool relocatable);
/* A file's section of GPU code by its name; false: it is none. cuda and hip sections. */
bool scan_section(struct scan *s, const char *name, uint64_t off, uint64_t size);
/* Offload bundles of HIP: names of their targets into out->hip (bundle.c). */
void scan_bundles(struct scan *s, uint64_t off, uint64_t size);
bool is_bundle(struct reader *r, uint64_t off);
/* Clang's offload binaries, one behind the other (offload.c). */
void scan_offload(struct scan *s, uint64_t off, uint64_t size);
bool is_offload(struct reader *r, uint64_t off);
enum { TARGETS_MAX = 1024 }; /* distinct ones of a file */
/* Letters, digits and "_.:+-" alone, 1 to 127 of them: what compilers call a target. */
bool target_word(const char *s);
/* Members of a static library (archive.c); false: it is none. */
bool scan_archive(struct scan *s);

#endif
