/* Scalar primitives, expanded from prims.def. */
#ifndef FUSEC_IR_PRIM_H
#define FUSEC_IR_PRIM_H

#include "ir/dtype.h"

typedef enum {
    PRIM_NONE,
#define PRIM(sym, ...) PRIM_##sym,
#include "ir/prims.def"
    PRIM_COUNT
} PrimId;

typedef enum { PRIM_RESULT_SAME, PRIM_RESULT_BOOL } PrimResult;
typedef enum { PRIM_CODE_STRAIGHT, PRIM_CODE_BRANCHES, PRIM_CODE_LOOPS } PrimCode;

typedef struct PrimInfo {
    const char *name;
    uint32_t arity;
    DtypeSet operands; /* of the last operand; a select's first is bool */
    PrimResult result;
    uint32_t cost;
    bool is_exact; /* the same on every target */
    PrimCode code; /* of floats on a GPU */
    PrimId of;     /* what --numerics=fast takes this one in place of; or PRIM_NONE */
    /* How far a target's f32 may be from the exact value, besides a rounding: the sum of both. */
    double relative, absolute;
    const char *how; /* it is computed on a GPU, where it takes another's place; Markdown */
} PrimInfo;

const PrimInfo *prim_info(PrimId prim);

/* What may stand for the primitive where its result, or one that depends on it as gently as an
 * activation does, is rounded to `dtype`: a cheaper one, or itself. */
PrimId prim_rounded_to(PrimId prim, Dtype dtype);
/* What --numerics=fast computes on operands of `dtype`: a shorter form, or the primitive itself. */
PrimId prim_fast(PrimId prim, Dtype dtype);
/* What a shorter form stands for, or the primitive itself. */
PrimId prim_full(PrimId prim);
/* How far a target's result in the compute type may be from the exact `value` of its operands,
 * which are of `dtype`: the primitive's own error, or its rounding. */
double prim_error(PrimId prim, Dtype dtype, double value);

/* The primitive's value on numbers held in doubles, computed as for `dtype` (F64, F32, I32 or
 * BOOL), unrounded for floats. For constant folding and scalar evaluation in tests. */
double prim_eval(PrimId prim, Dtype dtype, double a, double b, double c);

#endif
