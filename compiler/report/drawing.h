/* A picture with coordinates. Each kernel is laid out in a box, the kernels of one launch in the
 * box of that launch, and then all launches with the inputs and outputs of the graph. A launch of
 * one kernel of one op is a small box without contents. */
#ifndef FUSEC_REPORT_DRAWING_H
#define FUSEC_REPORT_DRAWING_H

#include "report/parts.h"

#define NONE UINT32_MAX

enum {
    FONT = 11, /* all lengths are in pixels */
    OP_H = 22,
    PILL_H = 17, /* pills show values in memory, on the edges of boxes */
    TITLE_H = 18,
    LABEL_H = 13,
    PAD = 14, /* from the edge of a box to its contents */
    MAX_STROKE = 5
};

/* The point where an edge meets a box: the x coordinate of a buffer on the upper or lower side. */
typedef struct Port {
    uint32_t buffer;
    bool is_store;
    double x;
} Port;

/* The box of a kernel, or of a launch of several kernels. */
typedef struct Box {
    Layered layout;
    double left, top; /* the place of the layout in the box */
    double w, h;
    double title_x;
    Vec(Port) ports;
} Box;

typedef struct Drawing {
    const Page *page;
    const ReportSide *side;
    const Picture *picture;
    Arena *arena;
    Text *out;
    double most_bytes; /* bytes of the largest value of both pictures, whose edge is the widest */
    const char *prefix;
    Box *kernels;  /* per kernel */
    Box *launches; /* per launch of several kernels */
    Layered top;
    uint32_t *node_of_buffer; /* per buffer: its node in `top`, or NONE */
    VecU32 buffer_of_edge;    /* per edge of `top` */
    Vec(double) bytes_of_edge;
    uint32_t first_launch; /* the node of launch 0 in `top` */
} Drawing;

/* Computes the coordinates. The caller sets page, side, picture, arena and most_bytes. */
void drawing_place(Drawing *drawing);

const Buffer *drawing_buffer(const Drawing *drawing, uint32_t buffer);
/* The label as the drawing prints it, shortened if it is long. */
const char *drawing_label(const Drawing *drawing, const char *label);
const char *drawing_kernel_title(const Drawing *drawing, uint32_t kernel);
const char *drawing_launch_title(const Drawing *drawing, uint32_t launch);
bool drawing_is_small(const Drawing *drawing, uint32_t launch);

#endif
