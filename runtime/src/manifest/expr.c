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

/* Infix printing goes through the tokens from the last to the first, and through the text from
 * right to left. A stack of pending pieces replaces recursion. Of the operands that wait there, no
 * two have the same depth of the stack of expr_eval, and an operator waits with each. Beside them
 * wait only the parentheses that have been closed, at most one per operator. */
enum {
    /* Levels of operands: how tightly one must bind to stand without parentheses. */
    LEVEL_ANY,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_ATOM,
    N_LEVELS,
    MAX_PIECES = FRT_MAX_EXPR_TOKENS / 2 + 2 * FRT_MAX_EXPR_DEPTH + 4
};

/* Characters between operands, numbered from N_LEVELS on. */
enum { LITERAL_OPEN = EXPR_MIN + 1, LITERAL_CLOSE, LITERAL_MAX_OPEN, LITERAL_MIN_OPEN };

static const char *const literals[] = {
    [EXPR_ADD] = "+",           [EXPR_SUB] = "-",      [EXPR_MUL] = "*",
    [EXPR_DIV] = "/",           [EXPR_MAX] = ", ",     [EXPR_MIN] = ", ",
    [LITERAL_OPEN] = "(",       [LITERAL_CLOSE] = ")", [LITERAL_MAX_OPEN] = "max(",
    [LITERAL_MIN_OPEN] = "min("};

/* An operand's level, or a literal from N_LEVELS on. */
typedef struct Pieces {
    uint8_t kinds[MAX_PIECES];
    size_t n;
} Pieces;

static void push(Pieces *pieces, int kind) {
    pieces->kinds[pieces->n++] = (uint8_t)kind;
}

/* Text that is written from its end, of which all bytes before the capacity are kept. */
typedef struct Text {
    char *bytes;
    size_t capacity;
    size_t at; /* bytes that are not written yet */
} Text;

static void text_put_before(Text *text, const char *piece, size_t n) {
    text->at -= n;
    for (size_t i = 0; i < n && text->at + i < text->capacity; i++) {
        text->bytes[text->at + i] = piece[i];
    }
}

static int level_of(ExprOp op) {
    switch (op) {
    case EXPR_ADD:
    case EXPR_SUB:
        return LEVEL_SUM;
    case EXPR_MUL:
    case EXPR_DIV:
        return LEVEL_PRODUCT;
    case EXPR_CONST:
    case EXPR_DIM:
    case EXPR_MAX:
    case EXPR_MIN:
        break;
    }
    return LEVEL_ATOM;
}

/* Pushes the pieces of an operation; the last one is pushed last. */
static void push_operation(ExprOp op, int level, Pieces *pieces) {
    bool is_call = op == EXPR_MAX || op == EXPR_MIN;
    int own = is_call ? LEVEL_ANY : level_of(op);
    bool is_enclosed = is_call || own < level;
    if (is_enclosed) {
        push(pieces, N_LEVELS + (op == EXPR_MAX   ? LITERAL_MAX_OPEN
                                 : op == EXPR_MIN ? LITERAL_MIN_OPEN
                                                  : LITERAL_OPEN));
    }
    push(pieces, own);
    push(pieces, N_LEVELS + (int)op);
    /* All four operators are left-associative: a right operand of equal level needs parentheses. */
    push(pieces, is_call ? LEVEL_ANY : own + 1);
    if (is_enclosed) {
        push(pieces, N_LEVELS + LITERAL_CLOSE);
    }
}

/* Writes the expression before `text->at`. */
static void put_before(const ExprToken *tokens, Expr expr, const char *const *names, Text *text) {
    Pieces pieces = {.n = 0};
    const ExprToken *token = &tokens[expr.first + expr.n];
    push(&pieces, LEVEL_ANY);
    while (pieces.n > 0) {
        int kind = pieces.kinds[--pieces.n];
        if (kind >= N_LEVELS) {
            text_put_before(text, literals[kind - N_LEVELS], strlen(literals[kind - N_LEVELS]));
            continue;
        }
        token--;
        if (token->op == EXPR_DIM) {
            text_put_before(text, names[token->value], strlen(names[token->value]));
        } else if (token->op == EXPR_CONST) {
            char digits[24];
            int n = snprintf(digits, sizeof digits, "%" PRId64, token->value);
            text_put_before(text, digits, (size_t)n);
        } else {
            push_operation(token->op, kind, &pieces);
        }
    }
}

size_t expr_print(const ExprToken *tokens, Expr expr, const char *const *names, char *text,
                  size_t n_bytes) {
    Text measured = {.at = SIZE_MAX};
    put_before(tokens, expr, names, &measured);
    size_t n = SIZE_MAX - measured.at;
    if (n_bytes > 0) {
        Text written = {.bytes = text, .capacity = n_bytes - 1, .at = n};
        put_before(tokens, expr, names, &written);
        text[n < n_bytes ? n : n_bytes - 1] = '\0';
    }
    return n;
}
