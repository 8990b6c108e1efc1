/* Operands of GEMMs laid out anew: a kernel of one map computes the operand into a buffer of
 * its own, and the GEMM reads it from there, the same elements at other addresses. */
#ifndef FUSEC_LAYOUT_PACK_H
#define FUSEC_LAYOUT_PACK_H

#include "plan/operand.h"
#include "plan/plan.h"

/* What the operand comes from: init kernels prepare what is made of params alone, others run every
 * time. */
typedef enum { MADE_OF_PARAMS, MADE_OF_INPUTS } MadeOf;

/* A layout of an operand, as a function of its own axis (m or n), k and the batch. */
typedef struct PackRequest {
    bool is_left;
    MadeOf made_of;
    uint32_t axis;
    bool in_panels;
    int64_t width; /* panels: columns of one */
    /* Rows: the axis along which elements lie side by side; how far apart they are for the
     * GEMM, and how many elements of one are stored, zeros behind the matrix's own. */
    uint32_t inner;
    DimId pitch, stored;
    const Choice *choice; /* Buffer's, and its source */
    uint32_t source;
} PackRequest;

/* An operand laid out, and the text of how it is computed. */
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

/* Has the operand of kernel `gemm` laid out so, by a kernel that is added at the end of the plan,
 * or was for another. False, and nothing has changed, where that cannot be. */
bool pack_operand(Packing *packing, uint32_t gemm, PackRequest request);

#endif
