/* Declarations shared by the interpreter's files. Internal. */
#ifndef FUSEC_INTERP_INTERP_NODE_H
#define FUSEC_INTERP_INTERP_NODE_H

#include "interp/interp.h"

/* The evaluation of one node. `out` has its shape and storage. `bounds` may be NULL and starts as
 * zeros. */
typedef struct Eval {
    const Graph *graph;
    const Node *node;
    const OpInfo *info;
    const int64_t *symbol_values;
    const Tensor *args;
    const double *const *errors; /* per argument its errors; NULL: it is exact. NULL: all are
                                  * exact */
    Tensor *out;
    double *bounds;
    Arena *arena;
    const char **error;
} Eval;

bool interp_eltwise(const Eval *e);
bool interp_cast(const Eval *e);
bool interp_source(const Eval *e);
bool interp_reduce(const Eval *e);
bool interp_argreduce(const Eval *e);
bool interp_scan(const Eval *e);
bool interp_scan_by(const Eval *e);
bool interp_sort(const Eval *e);
bool interp_segments(const Eval *e);
bool interp_update(const Eval *e);
bool interp_view(const Eval *e);
bool interp_concat(const Eval *e);
bool interp_matmul(const Eval *e);
/* Calls `visit` for each row of scores of a softmax, or a quantised product: `at` has the number of
 * the row's first element in the scores, in the values and in the result. */
typedef void VisitScores(const Eval *e, void *user, const int64_t *at);
bool interp_each_scores(const Eval *e, VisitScores *visit, void *user);
bool interp_online(const Eval *e);
bool interp_quantize(const Eval *e);

/* For fast graphs: widens `bounds`, which are for exact arguments and strict numerics, to fast
 * numerics and arguments within `errors`. */
bool interp_widen(const Eval *e);
/* The part of it for softmax and product: errors of the arguments. */
bool interp_widen_online(const Eval *e);
bool interp_widen_quantize(const Eval *e);

/* Sets the error message, prefixed with the node's op and name; returns false. */
STR_PRINTF(2, 3) bool interp_fail(const Eval *e, const char *format, ...);
bool interp_dim(const Eval *e, DimId dim, int64_t *value);

/* Walks the elements of a shape in row-major order. It carries the offset of the matching element
 * in up to three operands, each with a stride per axis of the walked shape. */
enum { WALK_MAX_OPERANDS = 3 };
typedef struct Walk {
    uint32_t rank, n_operands;
    int64_t dims[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK];
    int64_t strides[WALK_MAX_OPERANDS][TENSOR_MAX_RANK];
    int64_t offsets[WALK_MAX_OPERANDS];
} Walk;

Walk walk_over(const Tensor *shape);
/* Adds an operand with NumPy broadcasting: axes are matched from the last, extents of 1 repeat.
 * False when it does not broadcast to the walked shape. */
bool walk_add_broadcast(Walk *walk, const Tensor *operand);
/* Adds the batch axes of a matmul's argument (all but the last two) as a broadcast operand of a
 * walk over batches. */
bool walk_add_batch(Walk *walk, const Tensor *arg);
void walk_add_strides(Walk *walk, const int64_t *strides, int64_t offset);
void walk_next(Walk *walk);

/* A sum of finitely many numbers in twice double precision, with the data to bound every other
 * order of summation. */
typedef struct SumAcc {
    double hi, lo;    /* sum of the finite terms */
    double magnitude; /* sum of their absolute values, or of upper bounds of these */
    double special;   /* sum of the infinities and NaNs */
    bool has_special;
    int least_bit; /* exponent of the lowest set bit of any term; INT_MAX when all terms are 0 */
    double cut;    /* what tensor cores for 8-bit floats may cut off, all in all */
} SumAcc;

/* Tensor cores for 8-bit floats add the products of F8_STEP elements of k to a sum at once, or of
 * two halves one after the other. They cut every term off F8_BITS below the exponent of the largest
 * one, and the sum too, so a step has at most F8_CUTS cuts. The sums of F8_DEPTH elements each are
 * added in f32. */
enum { F8_DEPTH = 128, F8_STEP = 32, F8_BITS = 13, F8_CUTS = F8_STEP + 4 };

void sum_add_term(SumAcc *sum, double term);

/* Stores the rounding of `exact`. A target may round any number within `error` of it. */
void interp_settle(const Eval *e, int64_t i, double exact, double error);
double interp_unit_roundoff(Dtype compute);
/* Stores `number`, or for an integer dtype `whole`, as an element. */
void interp_fill(Tensor *out, int64_t i, double number, int64_t whole);

#endif
