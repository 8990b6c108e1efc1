/* The sections of a report. Each function prints one section; html.c calls them in the order of the
 * page. */
#ifndef FUSEC_REPORT_PARTS_H
#define FUSEC_REPORT_PARTS_H

#include "report/picture.h"
#include "report/report.h"
#include "report/svg.h"

/* The state of the page while the sections of one graph are printed. */
typedef struct Page {
    Arena *arena;
    Text *out;
    const Report *report;
    const ReportGraph *graph;
    const Ledger *ledger; /* the graph's ledger */
    uint32_t number;      /* number of the graph, with which the ids of its elements begin */
    const Picture *before, *after;
} Page;

void report_graphs(const Page *page);
void report_ledger(const Page *page);
void report_memory(const Page *page);
void report_roofline(const Page *page); /* prints nothing without measured times */

/* The measured time of a launch; 0: the launch was not measured. */
double page_launch_us(const ReportSide *side, const Picture *picture, uint32_t launch);
/* A dim's value as a number, and as text. */
double page_number(const Page *page, DimId dim);
const char *page_bytes(const Page *page, DimId dim);
/* A value's dtype and shape: `bf16[B, 64]`. */
const char *page_shape(const Page *page, Dtype dtype, const Shape *shape);
/* Begins a figure of width `w`. Figures of one row share the width of the page in proportion to
 * their widths, unless one would be too small to read. On a narrow screen they stand one below the
 * other. */
void page_begin_figure(const Page *page, double w);
/* The CSS class for the colour of an op. */
const char *op_class_name(OpClass cls);

#endif
