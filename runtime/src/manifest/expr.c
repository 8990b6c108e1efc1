/* Evaluation and printing of manifest expressions. */
#include "manifest/expr.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool checked_add(int64_t a, int64_t b, int64_t *sum) {
    return !__builtin_add_overflow(a, b, sum);
}

bool checked_mul(int64_t a, int64_t b, int64_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

static bool floor_div(int64_t a, int64_t b, int64_t *quotient) {
    if (b <= 0) {
        return false;
    }
    *quotient = a / b - (a % b < 0);
    return true;
}

static bool apply(ExprOp op, int64_t a, int64_t b, int64_t *result) {
    switch (op) {
    case EXPR_ADD:
        return checked_add(a, b, result);
    case EXPR_SUB:
        return !__builtin_sub_overflow(a, b, result);
    case EXPR_MUL:
        return checked_mul(a, b, result);
    case EXPR_DIV:
        return floor_div(a, b, result);
    case EXPR_MAX:
        *result = a > b ? a : b;
        return true;
    case EXPR_MIN:
        *result = a < b ? a : b;
        return true;
    case EXPR_CONST:
    case EXPR_DIM:
        break;
    }
    return false;
}

ExprResult expr_eval(const ExprToken *tokens, Expr expr, DimValues dims, int64_t *value) {
    int64_t stack[FRT_MAX_EXPR_DEPTH]; /* not cleared: most expressions have one or two tokens */
    size_t depth = 0;
    stack[0] = 0;
    for (uint32_t i = 0; i < expr.n; i++) {
        const ExprToken *token = &tokens[expr.first + i];
        if (token->op == EXPR_CONST) {
            stack[depth++] = token->value;
        } else if (token->op == EXPR_DIM) {
            if (!dims.known[token->value]) {
                *value = token->value;
                return EXPR_UNKNOWN_DIM;
            }
            stack[depth++] = dims.values[token->value];
        } else {
            depth--;
            if (!apply(token->op, stack[depth - 1], stack[depth], &stack[depth - 1])) {
                return EXPR_OVERFLOW;
            }
        }
    }
    *value = stack[0];
    return EXPR_OK;
}

int32_t expr_bare_dim(const ExprToken *tokens, Expr expr) {
    const ExprToken *token = &tokens[expr.first];
    return expr.n == 1 && token->op == EXPR_DIM ? (int32_t)token->value : -1;
}

/* factor * dim + rest; without a dim the factor is 0. */
typedef struct Linear {
    int64_t factor;
    int64_t rest;
} Linear;

static bool linear_apply(ExprOp op, Linear a, Linear b, Linear *result) {
    int64_t by = a.factor ? b.rest : a.rest;
    Linear scaled = a.factor ? a : b;
    switch (op) {
    case EXPR_ADD:
        return checked_add(a.factor, b.factor, &result->factor) &&
               checked_add(a.rest, b.rest, &result->rest);
    case EXPR_SUB:
        return !__builtin_sub_overflow(a.factor, b.factor, &result->factor) &&
               !__builtin_sub_overflow(a.rest, b.rest, &result->rest);
    case EXPR_MUL:
        return !(a.factor && b.factor) && checked_mul(scaled.factor, by, &result->factor) &&
               checked_mul(scaled.rest, by, &result->rest);
    case EXPR_DIV:
    case EXPR_MAX:
    case EXPR_MIN:
        result->factor = 0;
        return !a.factor && !b.factor && apply(op, a.rest, b.rest, &result->rest);
    case EXPR_CONST:
    case EXPR_DIM:
        break;
    }
    return false;
}

int32_t expr_linear_dim(const ExprToken *tokens, Expr expr, int64_t *factor, int64_t *rest) {
    Linear stack[FRT_MAX_EXPR_DEPTH] = {{0, 0}};
    size_t depth = 0;
    int32_t dim = -1;
    for (uint32_t i = 0; i < expr.n; i++) {
        const ExprToken *token = &tokens[expr.first + i];
        if (token->op == EXPR_DIM) {
            if (dim >= 0 && dim != (int32_t)token->value) {
                return -1;
            }
            dim = (int32_t)token->value;
            stack[depth++] = (Linear){1, 0};
        } else if (token->op == EXPR_CONST) {
            stack[depth++] = (Linear){0, token->value};
        } else {
            depth--;
            if (!linear_apply(token->op, stack[depth - 1], stack[depth], &stack[depth - 1])) {
                return -1;
            }
        }
    }
    *factor = stack[0].factor;
    *rest = stack[0].rest;
    return *factor > 0 ? dim : -1;
}

bool expr_is_const(const ExprToken *tokens, Expr expr, int64_t *value) {
    for (uint32_t i = 0; i < expr.n; i++) {
        if (tokens[expr.first + i].op == EXPR_DIM) {
            return false;
        }
    }
    return expr_eval(tokens, expr, (DimValues){NULL, NULL}, value) == EXPR_OK;
}

/* Infix printing works on token ranges: the operand that ends at token i starts at token start[i].
 * A stack of pending pieces replaces recursion and gives the text from left to right. */
typedef struct Piece {
    uint16_t last;   /* the operand that ends at this token, */
    uint8_t level;   /* in parentheses if it binds less tightly than this level; */
    uint8_t literal; /* or, unless LITERAL_NONE, these characters */
} Piece;

/* Characters between operands, numbered as the operators are where those have some. */
enum {
    LITERAL_NONE,
    LITERAL_OPEN = EXPR_MIN + 1,
    LITERAL_CLOSE,
    LITERAL_MAX_OPEN,
    LITERAL_MIN_OPEN
};

static const char *const literals[] = {
    [EXPR_ADD] = "+",           [EXPR_SUB] = "-",      [EXPR_MUL] = "*",
    [EXPR_DIV] = "/",           [EXPR_MAX] = ", ",     [EXPR_MIN] = ", ",
    [LITERAL_OPEN] = "(",       [LITERAL_CLOSE] = ")", [LITERAL_MAX_OPEN] = "max(",
    [LITERAL_MIN_OPEN] = "min("};

typedef struct Text {
    char *bytes;
    size_t capacity;
    size_t n;
} Text;

static void text_put(Text *text, const char *piece) {
    for (; *piece; piece++) {
        if (text->n + 1 < text->capacity) {
            text->bytes[text->n] = *piece;
        }
        text->n++;
    }
}

static int level_of(ExprOp op) {
    switch (op) {
    case EXPR_ADD:
    case EXPR_SUB:
        return 1;
    case EXPR_MUL:
    case EXPR_DIV:
        return 2;
    case EXPR_CONST:
    case EXPR_DIM:
    case EXPR_MAX:
    case EXPR_MIN:
        break;
    }
    return 3;
}

/* start[i]: the first token of the operand that ends at token i. */
static void find_starts(const ExprToken *tokens, Expr expr, uint32_t *start) {
    for (uint32_t i = 0; i < expr.n; i++) {
        if (tokens[expr.first + i].op <= EXPR_DIM) {
            start[i] = i;
        } else {
            start[i] = start[start[i - 1] - 1];
        }
    }
}

static Piece operand(uint32_t last, int level) {
    return (Piece){.last = (uint16_t)last, .level = (uint8_t)level};
}

/* Pushes the pieces of the operand that ends at `last`, in reverse. Returns the new depth. */
static size_t push_operation(ExprOp op, uint32_t last, const uint32_t *start, int level,
                             Piece *stack, size_t n) {
    bool is_call = op == EXPR_MAX || op == EXPR_MIN;
    int own = is_call ? 0 : level_of(op);
    bool is_enclosed = is_call || own < level;
    if (is_enclosed) {
        stack[n++] = (Piece){.literal = LITERAL_CLOSE};
    }
    /* All four operators are left-associative: a right operand of equal level needs parentheses. */
    stack[n++] = operand(last - 1, is_call ? 0 : own + 1);
    stack[n++] = (Piece){.literal = (uint8_t)op};
    stack[n++] = operand(start[last - 1] - 1, own);
    if (is_enclosed) {
        stack[n++] = (Piece){.literal = op == EXPR_MAX   ? LITERAL_MAX_OPEN
                                        : op == EXPR_MIN ? LITERAL_MIN_OPEN
                                                         : LITERAL_OPEN};
    }
    return n;
}

size_t expr_print(const ExprToken *tokens, Expr expr, const char *const *names, char *text,
                  size_t n_bytes) {
    uint32_t start[FRT_MAX_EXPR_TOKENS] = {0};
    /* Each operation pushes at most five pieces and pops one. */
    Piece stack[5 * FRT_MAX_EXPR_TOKENS];
    Text out = {.bytes = text, .capacity = n_bytes};
    size_t n = 0;
    find_starts(tokens, expr, start);
    stack[n++] = operand(expr.n - 1, 0);
    while (n > 0) {
        Piece piece = stack[--n];
        const ExprToken *token = &tokens[expr.first + piece.last];
        if (piece.literal != LITERAL_NONE) {
            text_put(&out, literals[piece.literal]);
        } else if (token->op == EXPR_DIM) {
            text_put(&out, names[token->value]);
        } else if (token->op == EXPR_CONST) {
            char digits[24];
            snprintf(digits, sizeof digits, "%" PRId64, token->value);
            text_put(&out, digits);
        } else {
            n = push_operation(token->op, piece.last, start, piece.level, stack, n);
        }
    }
    if (n_bytes > 0) {
        text[out.n < n_bytes ? out.n : n_bytes - 1] = '\0';
    }
    return out.n;
}
