/* The contents of a picture of a plan: per kernel the values that it loads from memory, its ops,
 * the values that it stores, and the flow of values between them. Labels of ops include literals. A
 * picture has neither coordinates nor a file format. */
#ifndef FUSEC_REPORT_PICTURE_H
#define FUSEC_REPORT_PICTURE_H

#include "explain/explain.h"

typedef enum { ITEM_READ, ITEM_OP, ITEM_STORE } ItemKind;

typedef struct Item {
    ItemKind kind;
    NodeId node;       /* the op, or the node whose value is in the buffer */
    uint32_t buffer;   /* for READ and STORE */
    const char *label; /* `max`, `mul 0.125`, `t0` */
} Item;

/* The value of an item that a later item of the same kernel uses. */
typedef struct Flow {
    uint32_t from, to;
} Flow;

typedef struct PictureKernel {
    const Kernel *kernel;
    Vec(Item) items; /* reads, then ops in topological order, then stores */
    Vec(Flow) flows;
    uint32_t n_ops;
} PictureKernel;

typedef struct PictureLaunch {
    const uint32_t *kernels; /* indices in the plan of the kernels shown */
    uint32_t n;
    uint32_t number; /* index among all launches of the plan, shown or not */
} PictureLaunch;

typedef struct Picture {
    const Plan *plan;
    Vec(PictureKernel) kernels;
    Vec(PictureLaunch) launches;
    const int64_t *dims;          /* argument of picture_new */
    uint32_t n_init;              /* how many of the launches are init steps; they come first */
    uint32_t n_items, n_launches; /* of the plan, shown or not */
} Picture;

/* A picture of the kernels that run at `dims` (values by symbol, kept by the picture). NULL: of the
 * kernels that are the default of each choice, with all copies. */
Picture *picture_new(Arena *arena, const Plan *plan, const int64_t *dims);

/* The number of the launch in a run, from 1, as text; "init" for an init step. */
const char *picture_launch_name(Arena *arena, const Picture *picture, uint32_t launch);
/* The first launch at or after `from` that stores the buffer or a slice of it, or UINT32_MAX. */
uint32_t picture_maker(const Picture *picture, uint32_t buffer, uint32_t from);
/* Whether the caller owns the buffer: an input, a param or an output. */
bool picture_is_bound(const Picture *picture, uint32_t buffer);
/* The bytes of `buffer` that a launch stores; it may store only slices of the buffer. */
DimId picture_stored_bytes(const Picture *picture, const PictureLaunch *launch, uint32_t buffer);
/* The buffer that the output copies, if no launch stores the output; otherwise UINT32_MAX. */
uint32_t picture_original(const Picture *picture, uint32_t buffer);
/* Whether kernel `k` of the plan reads `buffer` and does not store it. */
bool picture_takes(const Picture *picture, uint32_t k, uint32_t buffer);
/* Whether a kernel of the launch reads `buffer` from memory that another launch wrote, or stores it
 * for another launch. */
bool launch_reads(const Picture *picture, const PictureLaunch *launch, uint32_t buffer);
bool launch_stores(const Picture *picture, const PictureLaunch *launch, uint32_t buffer);

/* The user's name of a value, or a replacement such as `v12`; and the value's line in the
 * source. */
const char *node_title(Arena *arena, const Graph *graph, NodeId node);
uint32_t node_line(const Graph *graph, NodeId node); /* 0: the value has no line */

#endif
