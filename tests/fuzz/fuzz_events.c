/* The reader of events over any bytes: never crashes, never leaks. */
#include "config.h"
#include "record/record_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct events_read r = { 0 };
    struct err err = { 0 };

    if (events_parse((const char *)data, size, "fuzz", &r, &err) && (!err.code || !*err.text))
        __builtin_trap();
    events_read_free(&r);
    return 0;
}
