/* Rewrites that change arithmetic, apart from what makes and lowers them: which of them a plan has,
 * what they are held to, and what they compute, evaluated on the host.
 *
 * There is one, `online-weights` (launch/online_softmax.h): rows that store w / sum(w), where w =
 * power(x - max(x)), between two products. With P the exact w / sum(w) and v the rhs of
 * the product behind, a column of the result is held to E sum(P |v|) + A sum(|v|) before it is
 * rounded to its dtype, E and A being numbers of the plan and the length of a row:
 * docs/design/attention.md derives them. */
#ifndef FUSEC_PLAN_REWRITE_H
#define FUSEC_PLAN_REWRITE_H

#include "interp/interp.h"
#include "plan/plan.h"

typedef struct Rewrite {
    uint32_t rows, result;  /* kernels */
    NodeId exponents;       /* x: [.., n] */
    NodeId gemm;            /* [.., columns] */
    PrimId power;           /* exp or exp2 */
    bool has_short_weights; /* weights are of a shorter form of it */
    Dtype weights, rounded; /* of the product's lhs and of its result */
    uint32_t width;         /* columns of a tile */
    bool is_limited;        /* columns that no row of a block sees are left out */
} Rewrite;

/* The rewrite of kernel `rows`; false: it has none. */
bool rewrite_of(const Plan *plan, uint32_t rows, Rewrite *rewrite);
/* Of all kernels. */
uint32_t rewrite_count(const Plan *plan);

/* E and A for rows of n elements: rewritten, and as the three kernels apart have them. */
typedef struct RewriteBound {
    double relative, absolute;
} RewriteBound;
RewriteBound rewrite_bound(const Rewrite *rewrite, double n);
RewriteBound rewrite_plain_bound(const Rewrite *rewrite, double n);

/* A rewrite at one size, and the values of the graph that it starts from. */
typedef struct RewriteCase {
    const Plan *plan;
    Rewrite rewrite;
    const int64_t *symbol_values;
    const uint8_t *const *bytes; /* per node: its elements, NULL where they are not known */
    int64_t n_rows, n, n_columns;
    int64_t matrix_rows;          /* rows that have the same v */
    const int64_t *value_offsets; /* per matrix: where its v begins, in elements */
} RewriteCase;
/* False: a value is not known, or an extent does not fit. */
bool rewrite_open(const Plan *plan, const Rewrite *rewrite, const int64_t *symbol_values,
                  const uint8_t *const *bytes, Arena *arena, RewriteCase *c);
/* x of a row, and v of its matrix: [n, n_columns]. */
void rewrite_load_exponents(const RewriteCase *c, int64_t row, double *x);
void rewrite_load_values(const RewriteCase *c, int64_t row, double *v);

/* One element of the product: the number that a right one is near, rounded; by how much it may
 * differ, and by how much it may where nothing is rewritten; as `bounds` of interp_node. */
typedef struct RewriteElement {
    double exact, bound, plain_bound;
} RewriteElement;
void rewrite_judge(const RewriteCase *c, const double *x, const double *v, Arena *scratch,
                   RewriteElement *row);

/* A row of the product as the rewritten plan has it: its programs, tile by tile, every step rounded
 * to f32. False: it reads what is not known. */
bool rewrite_evaluate(const RewriteCase *c, int64_t row, const double *v, Arena *scratch,
                      double *result);

#endif
