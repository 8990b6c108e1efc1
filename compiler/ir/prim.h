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
    DtypeSet operands; /* types of the last operand; a select's first is bool */
    PrimResult result;
    uint32_t cost;
    bool is_exact; /* the same on every target */
    PrimCode code; /* of floats on a GPU */
    PrimId of;     /* --numerics=fast replaces `of` by this primitive; or PRIM_NONE */
    /* The largest error of a target's f32 result, in addition to a rounding: `relative` times the
     * value plus `absolute`. */
    double relative, absolute;
    const char *how; /* how a GPU computes it where it replaces another; Markdown */
} PrimInfo;

const PrimInfo *prim_info(PrimId prim);

/* A cheaper primitive that may replace `prim` if its result, or an activation's result computed
 * from it, is rounded to `dtype`; or `prim` itself. */
PrimId prim_rounded_to(PrimId prim, Dtype dtype);
/* The primitive that --numerics=fast computes on operands of `dtype`: a shorter form, or `prim`
 * itself. */
PrimId prim_fast(PrimId prim, Dtype dtype);
/* The primitive that a shorter form replaces, or `prim` itself. */
PrimId prim_full(PrimId prim);
/* The largest distance between a target's result in the compute type and the exact `value`, for
 * operands of `dtype`: the primitive's own error, or its rounding. */
double prim_error(PrimId prim, Dtype dtype, double value);

/* The primitive's value on numbers held in doubles, computed as for `dtype` (F64, F32, I32 or
 * BOOL), unrounded for floats. Used for constant folding and by the interpreter in tests. */
double prim_eval(PrimId prim, Dtype dtype, double a, double b, double c);
/* Whether the primitive returns its other operand, or a NaN for a NaN, if operand `arg` is
 * `*number`. */
bool prim_has_neutral(PrimId prim, uint32_t arg, double *number);
/* The same for an integer dtype, exactly: it wraps to the dtype, or is 0 or 1 for a comparison. */
int64_t prim_eval_int(PrimId prim, Dtype dtype, int64_t a, int64_t b, int64_t c);

#endif
