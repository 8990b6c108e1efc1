/* Integer expressions of the manifest: postfix over constants and dims. Evaluation catches every
 * overflow and does not recurse. */
#ifndef FRT_EXPR_H
#define FRT_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ExprOp {
    EXPR_CONST, /* value */
    EXPR_DIM,   /* value is the dim's index */
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV, /* floor; the divisor is positive */
    EXPR_MAX,
    EXPR_MIN
} ExprOp;

typedef struct ExprToken {
    ExprOp op;
    int64_t value;
} ExprToken;

/* A range of the manifest's tokens. The reader guarantees that it is well formed: every operator
 * has its operands, one result remains, and the stack stays below FRT_MAX_EXPR_DEPTH. */
typedef struct Expr {
    uint32_t first;
    uint32_t n;
} Expr;

typedef enum ExprResult {
    EXPR_OK,
    EXPR_UNKNOWN_DIM, /* value is the index of a dim without a value */
    EXPR_OVERFLOW     /* overflow, or a divisor that is not positive */
} ExprResult;

/* Values of dims in the manifest's order; known[i] false: dim i has no value yet. */
typedef struct DimValues {
    const int64_t *values;
    const bool *known;
} DimValues;

ExprResult expr_eval(const ExprToken *tokens, Expr expr, DimValues dims, int64_t *value);

/* The dim's index if the expression is a bare dim, else -1. */
int32_t expr_bare_dim(const ExprToken *tokens, Expr expr);

/* The dim's index if the expression is factor * dim + rest with a positive factor, else -1. */
int32_t expr_linear_dim(const ExprToken *tokens, Expr expr, int64_t *factor, int64_t *rest);

bool expr_is_const(const ExprToken *tokens, Expr expr, int64_t *value);

/* Prints infix text as snprintf does. `names[i]` is the name of dim i. */
size_t expr_print(const ExprToken *tokens, Expr expr, const char *const *names, char *text,
                  size_t n_bytes);

bool checked_add(int64_t a, int64_t b, int64_t *sum);
bool checked_mul(int64_t a, int64_t b, int64_t *product);

#endif
