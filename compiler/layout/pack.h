/* Copies of GEMM operands: a map kernel computes the operand into a buffer of its own, and the GEMM
 * reads the same elements from there, at other addresses. */
#ifndef FUSEC_LAYOUT_PACK_H
#define FUSEC_LAYOUT_PACK_H

#include "plan/operand.h"
#include "plan/plan.h"

/* What the operand depends on. Init kernels copy an operand made of params alone; other copies run
 * in every run. */
typedef enum { MADE_OF_PARAMS, MADE_OF_INPUTS } MadeOf;

/* The requested layout of an operand, in terms of its own axis (m or n), k and the batch axes. */
typedef struct PackRequest {
    bool is_left;
    MadeOf made_of;
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

/* A copied operand, and the text of its program. */
typedef struct Made {
    const char *text;
    uint32_t buffer;
} Made;

typedef struct Packing {
    Arena *arena;
    Plan *plan;
    DimTab *dims;
    Vec(Made) made;
} Packing;

/* Makes kernel `gemm` read a copy of its operand in the requested layout. The copy is a kernel
 * added at the end of the plan, or an equal copy that exists. Returns false and changes nothing if
 * the operand cannot be copied. */
bool pack_operand(Packing *packing, uint32_t gemm, PackRequest request);

#endif
