/* The report: one HTML page about what fusion made of a file, with nothing outside of it: pictures
 * of every graph before and after, the ledger, the workspace over time, and where times were
 * measured a roofline. Equal input gives equal bytes. */
#ifndef FUSEC_REPORT_REPORT_H
#define FUSEC_REPORT_REPORT_H

#include "explain/explain.h"

/* A graph without fusion or with it. */
typedef struct ReportSide {
    const Plan *plan; /* scheduled and placed */
    const PlanCost *cost;
    /* Of the last n_measured launches; NULL: none was measured. What is before them runs once for
     * a program. */
    const double *measured_us;
    uint32_t n_measured;
} ReportSide;

typedef struct ReportGraph {
    ReportSide before, after;
    const Ledger *ledger; /* of `after` */
} ReportGraph;

typedef struct Report {
    const char *source, *target, *compiler;
    const char *device; /* where times were measured, or NULL */
    const Card *card;
    const int64_t *dims; /* values by symbol, at which all numbers hold */
    const ReportGraph *graphs;
    uint32_t n_graphs;
} Report;

void report_print(Arena *arena, const Report *report, Text *out);

#endif
