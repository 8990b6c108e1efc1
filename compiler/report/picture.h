/* What the pictures of a plan show: per kernel the values it reads from memory, the ops it computes
 * and the values it stores, and what flows between them. Literals are part of the ops' labels. Made
 * from a plan alone; knows neither places nor formats. */
#ifndef FUSEC_REPORT_PICTURE_H
#define FUSEC_REPORT_PICTURE_H

#include "explain/explain.h"

typedef enum { ITEM_READ, ITEM_OP, ITEM_STORE } ItemKind;

typedef struct Item {
    ItemKind kind;
    NodeId node;       /* the op, or whose value lies in the buffer */
    uint32_t buffer;   /* of READ and STORE */
    const char *label; /* `max`, `mul 0.125`, `t0` */
} Item;

/* From an item to a later one of the same kernel. */
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
    const uint32_t *kernels; /* those shown, by number in the plan */
    uint32_t n;
    uint32_t number; /* among all launches of the plan, shown or not */
} PictureLaunch;

typedef struct Picture {
    const Plan *plan;
    Vec(PictureKernel) kernels;
    Vec(PictureLaunch) launches;
    const int64_t *dims;          /* what picture_new was given */
    uint32_t n_init;              /* the first of them, which are init steps and none of a run */
    uint32_t n_items, n_launches; /* of the plan, shown or not */
} Picture;

/* Shows the kernels that start at `dims`, by symbol, which the picture keeps; NULL: the default of
 * each choice, with all copies. */
Picture *picture_new(Arena *arena, const Plan *plan, const int64_t *dims);

/* Its number in a run, from 1; of an init step "init". */
const char *picture_launch_name(Arena *arena, const Picture *picture, uint32_t launch);
/* The first launch from number `from` on that stores a buffer or a piece of it, or UINT32_MAX. */
uint32_t picture_maker(const Picture *picture, uint32_t buffer, uint32_t from);
/* Whether a buffer is the caller's: an input, a param or an output. */
bool picture_is_bound(const Picture *picture, uint32_t buffer);
/* Bytes of `buffer` that a launch stores: of its pieces, where it stores such. */
DimId picture_stored_bytes(const Picture *picture, const PictureLaunch *launch, uint32_t buffer);
/* The buffer that an output without a maker is a copy of, or UINT32_MAX. */
uint32_t picture_original(const Picture *picture, uint32_t buffer);
/* Whether kernel `k` of the plan reads `buffer`, and does not make it. */
bool picture_takes(const Picture *picture, uint32_t k, uint32_t buffer);
/* Whether any kernel of a launch reads `buffer` from elsewhere, or stores it for elsewhere. */
bool launch_reads(const Picture *picture, const PictureLaunch *launch, uint32_t buffer);
bool launch_stores(const Picture *picture, const PictureLaunch *launch, uint32_t buffer);

/* The user's name of a value and its line, or what stands for them: `h`, `v12`. */
const char *node_title(Arena *arena, const Graph *graph, NodeId node);
uint32_t node_line(const Graph *graph, NodeId node); /* 0: nowhere */
DimId node_bytes(const Graph *graph, NodeId node);

#endif
