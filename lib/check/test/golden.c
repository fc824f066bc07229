/* golden PIN FACTS - what check() finds when one fixed resolution and PIN meet FACTS, as JSON lines; for golden files.
 * Nothing of this host goes in. New facts: golden tests/fixtures/golden.pin X.facts >X.golden, then read what it says. */
#include "config.h"

#include <stdlib.h>
#include "check/check.h"

static struct object *add(struct closure *c, const char *soname, const char *path, enum why why)
{
    struct library *l = VEC_ADD(&c->libs);

    l->soname = xstrdup(soname);
    l->path = xstrdup(path);
    l->why = why;
    l->found_in = SIZE_MAX;
    l->object.path = xstrdup(path);
    l->object.soname = xstrdup(soname);
    l->object.has_versym = true;
    return &l->object;
}

static void image(struct object *o, enum image_kind kind, uint16_t arch, uint16_t major, uint16_t minor)
{
    *VEC_ADD(&o->images) = (struct gpu_image){ .kind = kind, .arch = arch, .major = major, .minor = minor };
    o->images.containers = 1;
}

/* A program of a Debian 12 login node: CUDA 12.4, GCC 12. */
static void fixed(struct closure *c)
{
    struct object *o = add(c, "recon-run", "/opt/recon/bin/recon-run", WHY_PATH);

    object_add_need(o, "libc.so.6", "GLIBC_2.34", false);
    object_add_need(o, "libc.so.6", "GLIBC_2.38", true);
    object_add_need(o, "libstdc++.so.6", "GLIBCXX_3.4.30", false);
    object_add_need(o, "libcudart.so.12", "libcudart.so.12", false);
    image(o, IMAGE_SASS, 75, 1, 7);
    image(o, IMAGE_SASS, 80, 1, 7);
    image(o, IMAGE_SASS, 90, 1, 7);
    image(o, IMAGE_PTX, 90, 8, 4);
    o->images.toolkit = xstrdup("12.4");
    o = add(c, "libcudart.so.12", "/usr/local/cuda-12.4/lib64/libcudart.so.12", WHY_LD_LIBRARY_PATH);
    object_add_need(o, "libc.so.6", "GLIBC_2.3.4", false);
    object_add_version(o, "libcudart.so.12");
    o = add(c, "libstdc++.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6", WHY_CACHE);
    object_add_need(o, "libc.so.6", "GLIBC_2.36", false); /* the login node's own: another node has another */
    object_add_version(o, "GLIBCXX_3.4.30");
    o = add(c, "libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", WHY_CACHE);
    object_add_version(o, "GLIBC_2.3.4");
    object_add_version(o, "GLIBC_2.34");
    object_add_version(o, "GLIBC_2.36");
}

int main(int argc, char **argv)
{
    static char home[] = "CUDA_HOME=/usr/local/cuda-12.4", path[] = "LD_LIBRARY_PATH=/usr/local/cuda-12.4/lib64";
    char *env[] = { home, path, NULL };
    struct resolution r = { 0 };
    struct findings found;
    struct err err = { 0 };
    struct str text = { 0 };
    struct facts facts;
    struct pin pin;

    if (argc != 3 || pin_read(argv[1], &pin, &err)) {
        fprintf(stderr, "usage: golden PIN FACTS; %s\n", err.text);
        return 64;
    }
    if (facts_read(argv[2], &facts, &err)) {
        fprintf(stderr, "%s\n", err.text);
        pin_release(&pin);
        return 65;
    }
    VEC_ADD(&r.closures);
    fixed(&r.closures.v[0]);
    check(&(struct check_case){ .pin = &pin, .facts = &facts, .resolution = &r, .received = env, .elsewhere = true }, NULL,
          &found);
    findings_json(&found, &text);
    fwrite(text.s, 1, text.len, stdout);
    str_release(&text);
    findings_release(&found);
    resolution_release(&r);
    facts_release(&facts);
    pin_release(&pin);
    return 0;
}
