/* The state of inlining, shared by its files and internal to them: inline_pull.c pulls values, and
 * inline.c composes reductions and stores of the values that it pulls. See inline.h. */
#ifndef FUSEC_FUSE_INLINE_INLINER_H
#define FUSEC_FUSE_INLINE_INLINER_H

#include "fuse/inline/inline.h"
#include "fuse/inline/inline_memo.h"
#include "fuse/inline/store_map.h"

typedef Vec(uint32_t) TraceIds;

/* An address that was computed before: kernels read and store most values of a shape at the same
 * coordinates. */
typedef struct KnownAddress {
    Shape shape;
    IndexId coords[MAX_RANK], address;
} KnownAddress;

enum { N_KNOWN_ADDRESSES = 4 };

typedef struct Inliner {
    Arena *arena;
    Arena *memory; /* of `memo`, which is not part of the result */
    const InlineInput *input;
    const Graph *graph;
    DimTab *dims;
    Group *group;
    ScalarTab *scalars;
    IndexTab *indices;
    IndexId coords[MAX_RANK]; /* of the domain's axes */
    uint32_t parallel_axes;   /* bit set of kernel axes */
    InlineMarks *marks;
    InlineMemo memo;
    NodeId placing;        /* the target that is being pulled at its store */
    NodeId reader;         /* the node whose arguments are being pulled, or NODE_NONE */
    Kernel *kernel;        /* receives the traces, if it has any; or NULL */
    TraceIds *operands;    /* of the value that is being pulled */
    Vec(TraceIds) of_slot; /* per reduction: traces of the reduced value */
    Vec(Dtype) results;    /* per reduction: its dtype; not rounded in fast programs */
    Vec(Store) stores;     /* per target */
    Vec(bool) is_row;      /* per target: see inline_arrange_stages */
    VecU32 stage;          /* per scalar: see inline_add_stages */
    bool has_paths;        /* a target is stored at the end of a path of several values */
    KnownAddress known[N_KNOWN_ADDRESSES]; /* a ring */
    uint32_t n_known;                      /* since the beginning */
    InlineFailure failure;
} Inliner;

/* Notes the first failure. */
ScalarId inline_fail(Inliner *c, ReasonId reason, NodeId node);
bool inline_in_memory(const Inliner *c, NodeId id);
/* Adds the trace of a value just pulled. Its coordinates must live as long as the kernel. */
uint32_t inline_trace(Inliner *c, const MemoEntry *entry, const TraceIds *operands);
/* The address of an element in the buffer that holds the value; no buffers exist during a trial. */
IndexId inline_address(Inliner *c, uint32_t buffer, const Shape *shape, const IndexId *coords);
/* The coordinate in the matmul for axis `d` of the domain, which may be a slice of the matmul. */
IndexId inline_gemm_coord(Inliner *c, uint32_t d);
/* Each view may double an index expression; then one of the views is stored. */
bool inline_is_heavy(const Inliner *c, const IndexId *coords, uint32_t rank);
/* The coordinates of a value of this span and shape. */
void inline_place_coords(Inliner *c, ValueSpan place, const Shape *shape, IndexId *coords);
/* The node's element at `coords` (one index per axis of the node) wherever the guard holds;
 * SCALAR_NONE after a failure. */
ScalarId inline_pull(Inliner *c, NodeId id, const IndexId *coords, GuardId guard);

/* Adds the reduction of a scan by a function; false after a failure. */
bool inline_compose_scan_by(Inliner *c, Kernel *kernel, NodeId id);

#endif
