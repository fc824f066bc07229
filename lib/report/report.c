#include "config.h"
#include "report/report_priv.h"

const struct name state_names[] = {
    { "waiting", STATE_WAITING }, { "done", STATE_DONE }, { "failed", STATE_FAILED }, { "refused", STATE_REFUSED },
    { "skipped", STATE_SKIPPED }, { "lost", STATE_LOST },
    { "cancelled", STATE_CANCELLED }, { NULL, 0 },
};

const struct report_format report_formats[] = {
    { "text", "tables for people", write_text },
    { "json", "one JSON object (schema report.json)", write_json },
    { "csv", "one row a dataset", write_csv },
    { NULL, NULL, NULL },
};

int report_write(const struct report *r, const struct report_format *format, FILE *f, struct err *err)
{
    if (format->write(r, f, err))
        return -1;
    if (fflush(f) || ferror(f))
        return err_sys(err, CODE_IO, "cannot write the report");
    return 0;
}
