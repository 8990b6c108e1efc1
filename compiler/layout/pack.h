/* Copies of GEMM operands: a map kernel computes the operand into a buffer of its own, and the GEMM
 * reads the same elements from there, at other addresses. */
#ifndef FUSEC_LAYOUT_PACK_H
#define FUSEC_LAYOUT_PACK_H

#include "plan/operand.h"
#include "plan/plan.h"

/* When the copy is made: once, by an init kernel, for an operand that depends on params alone; or
 * in every run. */
typedef enum { PACK_INIT, PACK_RUN } PackPhase;

/* The requested layout of an operand, in terms of its own axis (m or n), k and the batch axes. */
typedef struct PackRequest {
    bool is_left;
    PackPhase phase;
    uint32_t axis;
    bool in_panels;
    int64_t width; /* for panels: columns of a panel */
    /* For rows: the axis along which elements are contiguous; the distance between rows in
     * elements; and the elements stored per row, zeros after the matrix's own. */
    uint32_t inner;
    DimId pitch, stored;
    const Choice *choice; /* of the copy's buffer; and the buffer that is copied */
    uint32_t source;
} PackRequest;

/* A packed operand: the text of its program, and the buffer of the copy. */
typedef struct PackedOperand {
    const char *text;
    uint32_t buffer;
} PackedOperand;

typedef struct Packing {
    Arena *arena;
    Plan *plan;
    DimTab *dims;
    Vec(PackedOperand) packed;
} Packing;

/* Makes kernel `gemm` read a copy of its operand in the requested layout. The copy is a kernel
 * added at the end of the plan, or an equal copy that exists. Returns false and changes nothing if
 * the operand cannot be copied. */
bool pack_operand(Packing *packing, uint32_t gemm, PackRequest request);

#endif
