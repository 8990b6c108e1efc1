/* Rewrites that change arithmetic, independent of the code that makes and lowers them: which
 * rewrites a plan has, their error bounds, and their results, evaluated on the host.
 *
 * There is one rewrite, `online-weights` (launch/online_softmax.h), for a row kernel between two
 * matmuls that stores w / sum(w) with w = power(x - max(x)). Let P be the exact w / sum(w) and v
 * the rhs of the second matmul. A column of the result, before it is rounded to its dtype, must be
 * within E sum(P |v|) + A sum(|v|). E and A depend on the plan and the length of a row;
 * docs/design/online-softmax.md derives them. */
#ifndef FUSEC_PLAN_REWRITE_H
#define FUSEC_PLAN_REWRITE_H

#include "interp/interp.h"
#include "plan/plan.h"

typedef struct Rewrite {
    uint32_t rows, result;  /* kernels */
    NodeId exponents;       /* x: [.., n] */
    NodeId gemm;            /* [.., columns] */
    PrimId power;           /* exp or exp2 */
    bool has_short_weights; /* weights use a shorter form of the power */
    Dtype weights, rounded; /* dtypes of the second matmul's lhs and of its result */
    uint32_t width;         /* columns of a tile */
    bool is_limited;        /* columns that no row of a block sees are skipped */
    bool folds_scale;       /* the exponents' last multiplication is not rounded */
} Rewrite;

/* Finds the rewrite of kernel `rows`. Returns false if there is none. */
bool rewrite_of(const Plan *plan, uint32_t rows, Rewrite *rewrite);
/* The number of rewrites of the plan. */
uint32_t rewrite_count(const Plan *plan);

/* Magnitudes of exponents for which bounds are shown, and allowed where they are not known. */
enum { REWRITE_SHOWN_SIZE = 88, REWRITE_ALLOWED_SIZE = 1 << 16 };

/* E and A for rows of n elements, the greatest of which has the magnitude `size`, for the rewritten
 * plan. E is infinite where nothing is known. */
typedef struct RewriteBound {
    double relative, absolute;
} RewriteBound;
RewriteBound rewrite_bound(const Rewrite *rewrite, double n, double size);

/* A rewrite at one size, and the graph values from which it starts. */
typedef struct RewriteCase {
    const Plan *plan;
    Rewrite rewrite;
    const int64_t *symbol_values;
    const uint8_t *const *bytes; /* per node: its elements, NULL if unknown */
    int64_t n_rows, n, n_columns;
    int64_t matrix_rows;          /* number of rows with the same v */
    const int64_t *value_offsets; /* per matrix: the offset of its v in elements */
} RewriteCase;
/* Returns false if a value is unknown or an extent does not fit. */
bool rewrite_open(const Plan *plan, const Rewrite *rewrite, const int64_t *symbol_values,
                  const uint8_t *const *bytes, Arena *arena, RewriteCase *c);
/* Loads x of a row, and v of its matrix: [n, n_columns]. */
void rewrite_load_exponents(const RewriteCase *c, int64_t row, double *x);
void rewrite_load_values(const RewriteCase *c, int64_t row, double *v);

/* An element of the result: the exact value, rounded; its bound; and its bound without the rewrite.
 * The numbers are as `bounds` of interp_node. */
typedef struct RewriteElement {
    double exact, bound, plain_bound;
} RewriteElement;
void rewrite_judge(const RewriteCase *c, const double *x, const double *v, Arena *scratch,
                   RewriteElement *row);

/* Computes a row of the result as the rewritten plan does: its programs, tile by tile, with every
 * step rounded to f32. Returns false if the row reads unknown values. */
bool rewrite_evaluate(const RewriteCase *c, int64_t row, const double *v, Arena *scratch,
                      double *result);

#endif
