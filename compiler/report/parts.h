/* The sections of a report. Each prints its own; their order is html.c's. */
#ifndef FUSEC_REPORT_PARTS_H
#define FUSEC_REPORT_PARTS_H

#include "report/picture.h"
#include "report/report.h"
#include "report/svg.h"

/* One graph, being printed. */
typedef struct Page {
    Arena *arena;
    Text *out;
    const Report *report;
    const ReportGraph *graph;
    const Ledger *ledger; /* the graph's */
    uint32_t number;      /* of the graph; ids of its parts begin with it */
    const Picture *before, *after;
} Page;

void report_graphs(const Page *page);
void report_ledger(const Page *page);
void report_memory(const Page *page);
void report_roofline(const Page *page); /* nothing without measured times */

/* A launch's measured time; 0: it was not measured. */
double page_launch_us(const ReportSide *side, const Picture *picture, uint32_t launch);
/* A dim's value, and for people. */
double page_number(const Page *page, DimId dim);
const char *page_bytes(const Page *page, DimId dim);
/* A value's shape with its dtype: `bf16[B, 64]`. */
const char *page_shape(const Page *page, Dtype dtype, const Shape *shape);
/* Opens a figure `w` wide. Those of one row share the page by their widths, as long as none becomes
 * too small to be read; a narrow screen has one below the other. */
void page_begin_figure(const Page *page, double w);
/* The class of CSS that has an op's colour. */
const char *op_class_name(OpClass cls);

#endif
