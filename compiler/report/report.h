/* The report: one HTML page on the fusion of a file. It loads nothing else. It shows pictures of
 * every graph without and with fusion, the ledger, the workspace over time, and a roofline if times
 * were measured. Equal input gives equal bytes. */
#ifndef FUSEC_REPORT_REPORT_H
#define FUSEC_REPORT_REPORT_H

#include "explain/explain.h"

/* A graph planned without or with fusion. */
typedef struct ReportSide {
    const Plan *plan; /* scheduled and placed */
    const PlanCost *cost;
    /* Microseconds of the last n_measured launches of the plan; NULL: no measurement. The launches
     * before those run once per program. */
    const double *measured_us;
    uint32_t n_measured;
} ReportSide;

typedef struct ReportGraph {
    ReportSide before, after;
    const Ledger *ledger; /* of `after` */
} ReportGraph;

typedef struct Report {
    const char *source, *target, *compiler;
    const char *device; /* name of the device on which times were measured */
    const Card *card;
    const int64_t *dims; /* dims by symbol, at which all numbers hold */
    const ReportGraph *graphs;
    uint32_t n_graphs;
} Report;

void report_print(Arena *arena, const Report *report, Text *out);

#endif
