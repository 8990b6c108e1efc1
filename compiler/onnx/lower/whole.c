/* Floats that follow from dims, as exporters compute extents: ceil(cast(H, f32) / 2.0). Such a
 * float is a dim over a number. The ops on it are lowered as on any float; where their result is
 * cast to an integer, the dim is known, and the float ops are dropped, since nothing reads them. */
#include "onnx/call/import_state.h"

#include <math.h>

/* A dim over a positive number. */
typedef struct Fraction {
    DimId dim;
    int64_t below;
} Fraction;

/* A number, as 3 or 0.5; false: it is no fraction of small numbers. */
static bool fraction_of_number(Call *c, double value, Fraction *f) {
    double inverse = 1 / value;
    bool is_part = fabs(value) < 1 && inverse > 1 && inverse == floor(inverse);
    if (fabs(value) > INT32_MAX || (!is_part && value != floor(value)) || inverse > INT32_MAX)
        return value == 0 && (*f = (Fraction){number(c, 0), 1}, true);
    *f = (Fraction){number(c, is_part ? 1 : (int64_t)value), is_part ? (int64_t)inverse : 1};
    return true;
}

/* Element k of input i, a number or a fraction of dims; false: it is neither. */
static bool fraction_of(Call *c, uint32_t i, uint32_t k, Fraction *f) {
    const Value *value = input_value(c, i);
    const Known *known = input_known(c, i);
    if (!value) return false;
    if (known && known->floats && k < known->n) return fraction_of_number(c, known->floats[k], f);
    if (!value->whole || k >= value->whole->n) return false;
    *f = (Fraction){value->whole->ints[k], value->below ? value->below : 1};
    return f->dim != DIM_NONE;
}

/* The fraction as one over a number that is `times` larger. */
static DimId scaled(Call *c, const Fraction *f, int64_t times) {
    return dim_mul_const(c->im->b->dims, f->dim, times);
}

/* The larger of two whole numbers, where the dims prove which; DIM_NONE: they do not. */
static DimId larger(Call *c, const Fraction *a, const Fraction *b) {
    DimTab *dims = c->im->b->dims;
    if (a->below != 1 || b->below != 1) return DIM_NONE;
    if (dim_prove_le(dims, b->dim, a->dim)) return a->dim;
    return dim_prove_le(dims, a->dim, b->dim) ? b->dim : DIM_NONE;
}

/* a op b; false: the result is no fraction that is known. */
static bool combine(Call *c, OpId op, const Fraction *a, const Fraction *b, Fraction *made) {
    DimTab *dims = c->im->b->dims;
    int64_t divisor;
    made->below = a->below * b->below;
    if (op == OP_ADD) made->dim = dim_add(dims, scaled(c, a, b->below), scaled(c, b, a->below));
    if (op == OP_SUB) made->dim = dim_sub(dims, scaled(c, a, b->below), scaled(c, b, a->below));
    if (op == OP_MUL) made->dim = dim_mul(dims, a->dim, b->dim);
    if (op == OP_DIV) {
        if (!dim_is_const(dims, b->dim, &divisor) || divisor < 1 || divisor > INT32_MAX)
            return false;
        *made = (Fraction){scaled(c, a, b->below), a->below * divisor};
    }
    if (op == OP_MAXIMUM) *made = (Fraction){larger(c, a, b), 1};
    return made->dim != DIM_NONE && made->below <= INT32_MAX;
}

static bool rounded(Call *c, OpId op, const Fraction *a, Fraction *made) {
    DimTab *dims = c->im->b->dims;
    if (op != OP_CEIL && op != OP_FLOOR) return false;
    DimId up = op == OP_CEIL ? dim_add(dims, a->dim, number(c, a->below - 1)) : a->dim;
    *made = (Fraction){dim_div(dims, up, number(c, a->below)), 1};
    return made->dim != DIM_NONE;
}

/* Notes n elements of the output, which is a list or a scalar. */
static void note(Call *c, uint32_t n, const DimId *dims, int64_t below) {
    Value *value = onnx_scope_own(c->scope, c->node->outputs.data[0]);
    const int64_t extents[] = {n};
    if (!value || value->node == NODE_NONE || shape_of(c, value->node)->rank > 1) return;
    Known *whole = known_new(c->im, ELEM_INT64, shape_of(c, value->node)->rank, extents);
    if (whole->n != n) return;
    memcpy(whole->ints, dims, n * sizeof *dims);
    value->whole = whole;
    value->below = below;
}

/* Lists of whole numbers, one after the other: of a Concat, or of one input under another shape. */
static void note_list(Call *c) {
    Fraction f;
    DimId dims[2 * MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->node->inputs.n && (i == 0 || c->op->lower == onnx_concat); i++) {
        uint32_t k = 0;
        for (; n < 2 * MAX_RANK && fraction_of(c, i, k, &f) && f.below == 1; k++) dims[n++] = f.dim;
        const Value *value = input_value(c, i);
        if (!value) return;
        const Known *all = value->whole ? value->whole : input_known(c, i);
        if (!all || k != all->n) return;
    }
    note(c, n, dims, 1);
}

void onnx_note_whole(Call *c) {
    Fraction a, b, made = {DIM_NONE, 1};
    OpId op = c->op->lower == onnx_clip ? OP_MAXIMUM : c->op->id;
    if (!has_output(c, 0) || !fraction_of(c, 0, 0, &a)) return;
    if (c->op->lower == onnx_concat || c->op->lower == onnx_unsqueeze) {
        note_list(c);
        return;
    }
    const Value *first = input_value(c, 0), *second = input_value(c, 1);
    bool is_list =
        (first->whole && first->whole->n > 1) || (second && second->whole && second->whole->n > 1);
    uint32_t n = has_input(c, 2) ? 3 : has_input(c, 1) ? 2 : 1;
    if (is_list || n == 3) return;
    bool is_made = n == 1 ? rounded(c, op, &a, &made)
                          : fraction_of(c, 1, 0, &b) && combine(c, op, &a, &b, &made);
    if (is_made) note(c, 1, &made.dim, made.below);
}

Known *onnx_whole_known(Call *c, uint32_t i) {
    const Value *value = input_value(c, i);
    DimTab *dims = c->im->b->dims;
    if (!value || !value->whole) return NULL;
    Known *known = known_new(c->im, ELEM_INT64, value->whole->rank, value->whole->dims);
    for (uint32_t k = 0; k < known->n; k++) {
        DimId dim = value->whole->ints[k];
        if (value->below > 1 && dim_lo(dims, dim) < 0) return NULL; /* a cast rounds to 0 */
        known->ints[k] = value->below > 1 ? dim_div(dims, dim, number(c, value->below)) : dim;
    }
    return known;
}
