/* report_priv.h - inside lib/report: the tallies that the reader fills, the writers. */
#ifndef RECON_REPORT_PRIV_H
#define RECON_REPORT_PRIV_H

#include "report/report.h"

/* tally.c: sums over many events, without a walk over all that was seen for each */
const char *report_text_of(struct report *r, const char *s); /* one copy of each text; NULL gives NULL */
void tally_step(struct report *r, const struct event_step *s);
void tally_finding(struct report *r, const struct finding *f, const char *node);
void tally_alarm(struct report *r, const char *rule, const char *text, const char *node);
void tally_finish(struct report *r);
void tally_free(struct report *r);

int write_text(const struct report *r, FILE *f, struct err *err);
int write_json(const struct report *r, FILE *f, struct err *err);
int write_csv(const struct report *r, FILE *f, struct err *err);

#endif
