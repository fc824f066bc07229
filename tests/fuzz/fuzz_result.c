/* A published result's recon.json over any bytes. */
#include "config.h"
#include "record/record_priv.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/recon-fuzz-result.XXXXXX";

static void clean(void)
{
    dir_remove(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *path;
    struct result r = { 0 };
    struct err err = { 0 };
    FILE *f;

    if (!path) {
        if (!mkdtemp(dir) && !mkdtemp(strcpy(dir, "/tmp/recon-fuzz-result.XXXXXX")))
            abort();
        atexit(clean);
        path = path_join(dir, RESULT_FILE);
    }
    f = fopen(path, "w");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
    if (result_read(dir, 3, &r, &err) == 0)
        result_release(&r);
    else if (!err.code || !*err.text)
        abort();
    err = (struct err){ 0 };
    result_judge(dir, 3, "xxh3:0", "xxh3:1", true, &err);
    return 0;
}
