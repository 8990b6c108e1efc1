/* A picture with places: each kernel laid out by itself, kernels of one launch inside its box,
 * launches and what comes in and goes out around them. A launch of one kernel of one op is a small
 * box. */
#ifndef FUSEC_REPORT_DRAWING_H
#define FUSEC_REPORT_DRAWING_H

#include "report/parts.h"

#define NONE UINT32_MAX

enum {
    FONT = 11, /* pixels, and so are all lengths */
    OP_H = 22,
    PILL_H = 17, /* of values in memory, on the edges of boxes */
    TITLE_H = 18,
    LABEL_H = 13,
    PAD = 14, /* of boxes around what they hold */
    MAX_STROKE = 5
};

/* Where an edge meets a box: a buffer's place on its upper or lower side, from the left. */
typedef struct Port {
    uint32_t buffer;
    bool is_store;
    double x;
} Port;

/* A laid out kernel, or a launch of several. */
typedef struct Box {
    Layered layout;
    double left, top; /* of the layout in the box */
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
    double most_bytes; /* of any value, in both pictures: the widest edge */
    const char *prefix;
    Box *kernels;  /* per kernel */
    Box *launches; /* per launch: of several kernels */
    Layered top;
    uint32_t *node_of_buffer; /* per buffer: its node at the top, or NONE */
    VecU32 buffer_of_edge;    /* per edge at the top */
    Vec(double) bytes_of_edge;
    uint32_t first_launch; /* the node of launch 0 */
} Drawing;

/* Fills all but what says what is drawn: page, side, picture, arena, most_bytes. */
void drawing_place(Drawing *drawing);

const Buffer *drawing_buffer(const Drawing *drawing, uint32_t buffer);
/* A label as shown: not too long. */
const char *drawing_label(const Drawing *drawing, const char *label);
const char *drawing_kernel_title(const Drawing *drawing, uint32_t kernel);
const char *drawing_launch_title(const Drawing *drawing, uint32_t launch);
bool drawing_is_small(const Drawing *drawing, uint32_t launch);

#endif
