/* Einsum: operands are joined from left to right by matrix products, over axes by their letters.
 * The axes of `...` have numbers in place of letters, counted from the last. */
#include "onnx/call/import_state.h"

#include <ctype.h>

enum { FIRST_OTHER_AXIS = 256 };

typedef struct Term {
    NodeId x;
    uint32_t n;
    int labels[2 * MAX_RANK];
} Term;

static uint32_t find_label(const Term *term, int label) {
    uint32_t k = 0;
    while (k < term->n && term->labels[k] != label) k++;
    return k;
}

/* Reads the letters of a term up to `,`, `-` or the end; `...` stands for `n_other` axes. */
static bool read_term(Call *c, const char **text, uint32_t rank, bool is_result, uint32_t n_other,
                      Term *term) {
    const char *end = *text;
    uint32_t n_letters = 0;
    for (; *end && *end != ',' && *end != '-'; end++)
        n_letters += isalpha((unsigned char)*end) != 0;
    if (n_letters > MAX_RANK || (!is_result && n_letters > rank))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "equation: a term has too many letters");
    if (!is_result) n_other = rank - n_letters;
    for (; *text < end; ++*text) {
        if (isalpha((unsigned char)**text)) term->labels[term->n++] = (unsigned char)**text;
        if (strncmp(*text, "...", 3) != 0) continue;
        for (uint32_t k = n_other; k-- > 0 && term->n < MAX_RANK;)
            term->labels[term->n++] = FIRST_OTHER_AXIS + (int)k;
        *text += 2;
    }
    return is_result || term->n == rank ||
           onnx_fail(c, DIAG_SHAPE_MISMATCH, "equation: a term has %u letters for %u axes", term->n,
                     rank);
}

static void drop_axis(Term *term, uint32_t axis) {
    for (uint32_t k = axis; k + 1 < term->n; k++) term->labels[k] = term->labels[k + 1];
    term->n--;
}

/* Of a letter that a term has twice, the diagonal. */
static void take_diagonals(Call *c, Term *term) {
    for (uint32_t k = 0; k < term->n && term->x != NODE_NONE; k++) {
        uint32_t first = find_label(term, term->labels[k]);
        if (first == k) continue;
        Shape shape = *shape_of(c, term->x);
        NodeId is_on = op2(c, OP_EQUAL, index_along(c, &shape, first), index_along(c, &shape, k));
        NodeId kept = where(c, is_on, term->x, constant(c, 0, term->x));
        term->x = reduce(c, OP_SUM, kept, 1u << k, false);
        drop_axis(term, k--);
    }
}

/* Sums over the axes that nothing needs any more. */
static void sum_unneeded(Call *c, Term *term, const Term *rest, uint32_t n_rest) {
    for (uint32_t k = 0; k < term->n && term->x != NODE_NONE; k++) {
        bool is_needed = false;
        for (uint32_t i = 0; i < n_rest; i++)
            is_needed = is_needed || find_label(&rest[i], term->labels[k]) < rest[i].n;
        if (is_needed) continue;
        term->x = reduce(c, OP_SUM, term->x, 1u << k, false);
        drop_axis(term, k--);
    }
}

/* x with its axes in the order of the labels: [shared.., kept.., contracted..], or with the last
 * two turned, and the kept and the contracted ones as one axis each. */
static NodeId as_matrix(Call *c, const Term *term, const Term *order, uint32_t n_shared,
                        uint32_t n_first) {
    int64_t perm[2 * MAX_RANK];
    Shape to = {.rank = n_shared + 2};
    for (uint32_t k = 0; k < order->n; k++) perm[k] = find_label(term, order->labels[k]);
    NodeId x = transpose(c, term->x, perm);
    if (x == NODE_NONE) return x;
    Shape from = *shape_of(c, x);
    if (to.rank > MAX_RANK) {
        onnx_fail(c, DIAG_LIMIT, "it needs more than 8 axes");
        return NODE_NONE;
    }
    to.dims[n_shared] = to.dims[n_shared + 1] = number(c, 1);
    for (uint32_t k = 0; k < from.rank; k++) {
        uint32_t at = k < n_shared ? k : k < n_shared + n_first ? n_shared : n_shared + 1;
        to.dims[at] =
            k < n_shared ? from.dims[k] : dim_mul(c->im->b->dims, to.dims[at], from.dims[k]);
    }
    return reshape_to(c, x, &to);
}

static DimId extent_of(Call *c, const Term *term, int label) {
    uint32_t k = find_label(term, label);
    return k < term->n ? shape_of(c, term->x)->dims[k] : number(c, 1);
}

/* The product of two terms; `rest` are the terms behind them, and the result. */
static Term joined(Call *c, const Term *a, const Term *b, const Term *rest, uint32_t n_rest) {
    Term result = {.x = NODE_NONE}, left = result, right = result, gone = result, own = result;
    uint32_t n_shared = 0;
    if (a->x == NODE_NONE || b->x == NODE_NONE) return result;
    for (uint32_t k = 0; k < a->n; k++) {
        bool is_needed = false, is_both = find_label(b, a->labels[k]) < b->n;
        for (uint32_t i = 0; i < n_rest; i++)
            is_needed = is_needed || find_label(&rest[i], a->labels[k]) < rest[i].n;
        Term *to = !is_both ? &own : is_needed ? &left : &gone;
        to->labels[to->n++] = a->labels[k];
    }
    n_shared = left.n;
    result = right = left;
    for (uint32_t k = 0; k < own.n; k++)
        left.labels[left.n++] = result.labels[result.n++] = own.labels[k];
    for (uint32_t k = 0; k < gone.n; k++)
        left.labels[left.n++] = right.labels[right.n++] = gone.labels[k];
    for (uint32_t k = 0; k < b->n; k++)
        if (find_label(a, b->labels[k]) == a->n)
            right.labels[right.n++] = result.labels[result.n++] = b->labels[k];
    NodeId product = matmul(c, as_matrix(c, a, &left, n_shared, own.n),
                            as_matrix(c, b, &right, n_shared, gone.n));
    Shape to = {.rank = result.n};
    if (product == NODE_NONE || to.rank > MAX_RANK) return (Term){.x = NODE_NONE};
    for (uint32_t k = 0; k < to.rank; k++) {
        DimId extent = extent_of(c, a, result.labels[k]);
        if (dim_equals_const(c->im->b->dims, extent, 1)) extent = extent_of(c, b, result.labels[k]);
        to.dims[k] = extent;
    }
    result.x = reshape_to(c, product, &to);
    return result;
}

/* Without `->` the result has the axes of `...`, and the letters that stand once, in order. */
static void usual_result(const Term *terms, uint32_t n, uint32_t n_other, Term *result) {
    for (uint32_t k = n_other; k-- > 0;) result->labels[result->n++] = FIRST_OTHER_AXIS + (int)k;
    for (int letter = 0; letter < FIRST_OTHER_AXIS && result->n < MAX_RANK; letter++) {
        uint32_t n_found = 0;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < terms[i].n; k++) n_found += terms[i].labels[k] == letter;
        if (n_found == 1) result->labels[result->n++] = letter;
    }
}

static bool read_equation(Call *c, const char *text, uint32_t n, Term *terms) {
    uint32_t n_other = 0;
    for (uint32_t i = 0; i < n; i++) {
        terms[i].x = input(c, i);
        if (terms[i].x == NODE_NONE) return false;
        if (!read_term(c, &text, shape_of(c, terms[i].x)->rank, false, 0, &terms[i])) return false;
        uint32_t others = 0;
        for (uint32_t k = 0; k < terms[i].n; k++) others += terms[i].labels[k] >= FIRST_OTHER_AXIS;
        if (others > n_other) n_other = others;
        if (i + 1 < n && *text++ != ',')
            return onnx_fail(c, DIAG_WRONG_COUNT, "equation: fewer terms than inputs");
    }
    if (!*text) {
        usual_result(terms, n, n_other, &terms[n]);
        return true;
    }
    if (strncmp(text, "->", 2) != 0)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "equation: `%s` is no result", text);
    text += 2;
    return read_term(c, &text, 0, true, n_other, &terms[n]);
}

bool onnx_einsum(Call *c) {
    uint32_t n = c->node->inputs.n;
    int64_t perm[MAX_RANK];
    Term *terms = arena_array(c->im->arena, Term, n + 1);
    if (!read_equation(c, attr_string(c, "equation", ""), n, terms)) return false;
    for (uint32_t i = 0; i < n; i++) take_diagonals(c, &terms[i]);
    Term all = terms[0];
    for (uint32_t i = 1; i < n; i++) all = joined(c, &all, &terms[i], &terms[i + 1], n - i);
    sum_unneeded(c, &all, &terms[n], 1);
    if (all.x == NODE_NONE || all.n != terms[n].n)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "equation: the result has letters that no term has");
    for (uint32_t k = 0; k < all.n; k++) perm[k] = find_label(&all, terms[n].labels[k]);
    return output(c, 0, all.n ? transpose(c, all.x, perm) : all.x);
}
