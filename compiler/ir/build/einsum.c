/* Einsum: sums of products over axes that letters name. Operands are joined from left to right, two
 * by a matrix product, or by a product of elements where they sum over no letter. A letter that one
 * operand alone has is summed before. See build.h. */
#include "ir/build/build.h"

/* A label is a letter's number, or that of an axis of `...`, counted from the last. Sets of labels
 * are 64 bits. */
enum {
    N_LETTERS = 52,
    MAX_OTHERS = 8, /* axes of `...` */
    N_LABELS = N_LETTERS + MAX_OTHERS,
    LABEL_OTHERS = N_LABELS, /* `...`, while the equation is read */
    MAX_LABELS = 2 * MAX_RANK
};

typedef struct Labels {
    uint32_t n;
    int at[MAX_LABELS];
} Labels;

typedef struct Term {
    NodeId x;
    Labels labels; /* of the axes of x */
} Term;

typedef struct Einsum {
    Builder *b;
    Precision precision;
    const Dtype *out; /* of each step; NULL: the operands' */
    const char *text; /* of the equation that is not read yet */
    uint32_t n;
    Term *terms; /* of the operands */
    Labels result;
} Einsum;

static uint64_t bit(int label) {
    return UINT64_C(1) << label;
}

static uint64_t set_of(const Labels *labels) {
    uint64_t set = 0;
    for (uint32_t k = 0; k < labels->n; k++) set |= bit(labels->at[k]);
    return set;
}

static void add(Labels *labels, int label) {
    labels->at[labels->n++] = label;
}

static void append(Labels *labels, const Labels *more) {
    for (uint32_t k = 0; k < more->n; k++) add(labels, more->at[k]);
}

static uint32_t find(const Labels *labels, int label) {
    uint32_t k = 0;
    while (k < labels->n && labels->at[k] != label) k++;
    return k;
}

/* The label that a letter stands for; -1: it is none. */
static int label_of(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    return letter >= 'a' && letter <= 'z' ? 26 + letter - 'a' : -1;
}

static const char *label_str(const Einsum *e, int label) {
    if (label >= N_LETTERS) return "an axis of `...`";
    return str_format(e->b->arena, "`%c`", label < 26 ? 'A' + label : 'a' + label - 26);
}

/* The equation. */

static bool fail(const Einsum *e, DiagId id, const char *message) {
    build_fail(e->b, id, (BuildPlace){.arg = 1}, "%s", message);
    return false;
}

static void skip_blanks(Einsum *e) {
    while (*e->text == ' ') e->text++;
}

/* Reads one label; LABEL_OTHERS for `...`, -1 for the end of the term. */
static int read_label(Einsum *e) {
    int label = label_of(*e->text);
    uint32_t n_bytes = label >= 0;
    if (strncmp(e->text, "...", 3) == 0) label = LABEL_OTHERS, n_bytes = 3;
    e->text += n_bytes;
    skip_blanks(e);
    return label;
}

static bool read_labels(Einsum *e, Labels *labels) {
    *labels = (Labels){0};
    skip_blanks(e);
    for (int label; (label = read_label(e)) >= 0; add(labels, label)) {
        if (labels->n > MAX_RANK)
            return fail(e, DIAG_LIMIT, "a term of the equation has more than 16 letters");
        if (label == LABEL_OTHERS && find(labels, label) < labels->n)
            return fail(e, DIAG_BAD_ARGUMENT, "a term of the equation has `...` twice");
    }
    return true;
}

/* Puts the labels of `n` axes in place of `...`. */
static void spell_others(Labels *labels, uint32_t n) {
    const Labels given = *labels;
    labels->n = 0;
    for (uint32_t k = 0; k < given.n; k++) {
        if (given.at[k] != LABEL_OTHERS) add(labels, given.at[k]);
        for (uint32_t i = given.at[k] == LABEL_OTHERS ? n : 0; i-- > 0;)
            add(labels, N_LETTERS + (int)i);
    }
}

/* Reads the letters of operand i; *n_others becomes the number of axes that its `...` stands for,
 * if that is more. */
static bool read_operand(Einsum *e, uint32_t i, uint32_t *n_others) {
    Labels *labels = &e->terms[i].labels;
    const Shape *shape = build_shape_of(e->b, e->terms[i].x);
    if (!read_labels(e, labels)) return false;
    bool has_others = find(labels, LABEL_OTHERS) < labels->n;
    uint32_t n_letters = labels->n - has_others, rank = shape->rank;
    if (n_letters > rank || (n_letters < rank && !has_others)) {
        build_fail(e->b, DIAG_SHAPE_MISMATCH, (BuildPlace){.arg = i + 2},
                   "the equation has %u letter%s for %s", n_letters, n_letters == 1 ? "" : "s",
                   shape_str(e->b->dims, e->b->arena, shape));
        return false;
    }
    if (rank - n_letters > MAX_OTHERS)
        return fail(e, DIAG_LIMIT, "`...` stands for more than 8 axes");
    spell_others(labels, rank - n_letters);
    if (rank - n_letters > *n_others) *n_others = rank - n_letters;
    return true;
}

static uint32_t count(const Einsum *e, int label) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (uint32_t k = 0; k < e->terms[i].labels.n; k++) n += e->terms[i].labels.at[k] == label;
    return n;
}

/* Without `->` the result has the axes of `...`, and the letters that stand once, in order. */
static bool usual_result(Einsum *e, uint32_t n_others) {
    for (uint32_t i = n_others; i-- > 0;) add(&e->result, N_LETTERS + (int)i);
    for (int letter = 0; letter < N_LETTERS; letter++) {
        if (count(e, letter) != 1) continue;
        if (e->result.n == MAX_RANK) return fail(e, DIAG_LIMIT, "the result has more than 16 axes");
        add(&e->result, letter);
    }
    return true;
}

static bool check_result(const Einsum *e) {
    for (uint32_t k = 0; k < e->result.n; k++) {
        int label = e->result.at[k];
        const char *name = label_str(e, label);
        if (find(&e->result, label) < k)
            return fail(e, DIAG_BAD_ARGUMENT,
                        str_format(e->b->arena, "%s stands twice in the result", name));
        if (!count(e, label))
            return fail(e, DIAG_BAD_ARGUMENT,
                        str_format(e->b->arena, "%s of the result is in no operand", name));
    }
    return e->result.n <= MAX_RANK || fail(e, DIAG_LIMIT, "the result has more than 16 axes");
}

static bool fail_text(const Einsum *e, const char *wanted) {
    const char *text =
        str_format(e->b->arena, "the equation has `%s` where %s is expected", e->text, wanted);
    return fail(e, DIAG_BAD_ARGUMENT, *e->text ? text : "the equation ends too early");
}

/* The equation has a term for each operand. */
static bool check_n_terms(const Einsum *e) {
    uint32_t n = 1;
    for (const char *p = e->text; *p && *p != '-'; p++) n += *p == ',';
    if (n == e->n) return true;
    build_fail(e->b, DIAG_WRONG_COUNT, (BuildPlace){.arg = 1},
               "the equation has %u term%s for %u operand%s", n, n == 1 ? "" : "s", e->n,
               e->n == 1 ? "" : "s");
    return false;
}

static bool read_equation(Einsum *e) {
    uint32_t n_others = 0;
    if (!check_n_terms(e)) return false;
    for (uint32_t i = 0; i < e->n; i++) {
        if (i && *e->text++ != ',') return e->text--, fail_text(e, "a letter or `,`");
        if (!read_operand(e, i, &n_others)) return false;
    }
    if (!*e->text) return usual_result(e, n_others);
    if (strncmp(e->text, "->", 2) != 0) return fail_text(e, "a letter, `...`, `,` or `->`");
    e->text += 2;
    if (!read_labels(e, &e->result)) return false;
    if (*e->text) return fail_text(e, "a letter of the result");
    spell_others(&e->result, n_others);
    return check_result(e);
}

/* Extents. */

static DimId extent_of(const Einsum *e, const Term *term, int label) {
    uint32_t k = find(&term->labels, label);
    return k < term->labels.n ? build_shape_of(e->b, term->x)->dims[k] : dim_const(e->b->dims, 1);
}

/* Of an axis that two terms have, or one of them. Extents of 1 stretch. */
static DimId joint_extent(const Einsum *e, const Term *a, const Term *c, int label) {
    DimId extent = extent_of(e, a, label);
    return dim_equals_const(e->b->dims, extent, 1) ? extent_of(e, c, label) : extent;
}

static bool check_extent(const Einsum *e, uint32_t i, int label, bool may_stretch, DimId *extent) {
    DimTab *dims = e->b->dims;
    for (uint32_t k = 0; k < e->terms[i].labels.n; k++) {
        if (e->terms[i].labels.at[k] != label) continue;
        DimId own = build_shape_of(e->b, e->terms[i].x)->dims[k];
        bool stretches = may_stretch && dim_equals_const(dims, own, 1);
        if (!*extent || (may_stretch && dim_equals_const(dims, *extent, 1))) *extent = own;
        if (own == *extent || stretches) continue;
        const char *first = dim_str(dims, e->b->arena, *extent);
        build_fail(e->b, DIAG_SHAPE_MISMATCH, (BuildPlace){.arg = i + 2},
                   "%s of the equation is %s and %s", label_str(e, label), first,
                   dim_str(dims, e->b->arena, own));
        return false;
    }
    return true;
}

static bool check_extents(const Einsum *e) {
    for (int label = 0; label < N_LABELS; label++) {
        DimId joint = DIM_NONE;
        for (uint32_t i = 0; i < e->n; i++) {
            DimId own = DIM_NONE;
            if (!check_extent(e, i, label, false, &own) || !check_extent(e, i, label, true, &joint))
                return false;
        }
    }
    return true;
}

/* One operand. */

/* The elements of x: [.., n, n] at equal indices of its last two axes: [.., n]. Behind another n
 * elements they are the first column of n rows of n + 1. */
static NodeId diagonal(Builder *b, NodeId x) {
    if (x == NODE_NONE) return x;
    DimTab *dims = b->dims;
    Shape shape = *build_shape_of(b, x);
    uint32_t n_lead = shape.rank - 2;
    DimId zero = dim_const(dims, 0), n = shape.dims[n_lead];
    DimId low[MAX_RANK], high[MAX_RANK];
    for (uint32_t k = 0; k < shape.rank; k++) low[k] = high[k] = zero;
    high[n_lead] = n;
    shape.dims[n_lead] = dim_mul(dims, n, n);
    const DimList flat = {n_lead + 1, shape.dims};
    x = build_pad(b, build_reshape(b, x, flat), (DimList){flat.n, low}, (DimList){flat.n, high},
                  NULL);
    shape.dims[n_lead] = n;
    shape.dims[n_lead + 1] = dim_add(dims, n, dim_const(dims, 1));
    x = build_reshape(b, x, (DimList){n_lead + 2, shape.dims});
    if (x == NODE_NONE) return x;
    Slicing slicing = build_slicing(b, x);
    return build_slice_index(b, &slicing, n_lead + 1, zero) ? build_slicing_finish(b, &slicing)
                                                            : NODE_NONE;
}

/* Of a letter that a term has twice, the diagonal. */
static void take_diagonals(Einsum *e, Term *term) {
    for (uint32_t k = 0; k < term->labels.n; k++) {
        const Labels from = term->labels;
        uint32_t first = find(&from, from.at[k]), n = 0;
        if (first == k) continue;
        int64_t perm[MAX_RANK];
        term->labels.n = 0;
        for (uint32_t i = 0; i < from.n; i++) {
            if (i == first || i == k) continue;
            perm[n++] = i;
            add(&term->labels, from.at[i]);
        }
        perm[n++] = first, perm[n++] = k;
        add(&term->labels, from.at[k]);
        term->x = diagonal(e->b, build_transpose(e->b, term->x, n, perm));
        k = 0;
    }
}

static NodeId widened(Einsum *e, NodeId x) {
    const Operand operand = operand_tensor(x);
    return e->out ? build_cast(e->b, &operand, *e->out) : x;
}

/* Sums over the axes that nothing needs any more. */
static void sum_unneeded(Einsum *e, Term *term, uint64_t needed) {
    const Labels from = term->labels;
    uint32_t axes = 0;
    term->labels.n = 0;
    for (uint32_t k = 0; k < from.n; k++) {
        if (needed & bit(from.at[k]))
            add(&term->labels, from.at[k]);
        else
            axes |= 1u << k;
    }
    if (axes) term->x = build_reduce(e->b, OP_SUM, widened(e, term->x), axes, false);
}

/* Two operands. */

/* The axes of a product [lead.., rows, gone] @ [lead.., gone, columns]. An axis of `lead` that one
 * side lacks is 1 there. Letters that lie side by side are one axis of the matrix. */
typedef struct Product {
    Labels lead, rows, columns, gone;
} Product;

static NodeId permuted(Einsum *e, const Term *term, const Labels *order) {
    int64_t perm[MAX_RANK];
    uint32_t n = 0;
    for (uint32_t k = 0; k < order->n; k++) {
        uint32_t axis = find(&term->labels, order->at[k]);
        if (axis < term->labels.n) perm[n++] = axis;
    }
    return term->x == NODE_NONE ? NODE_NONE : build_transpose(e->b, term->x, n, perm);
}

/* The product of the extents. */
static DimId size_of(const Einsum *e, const Term *a, const Term *c, const Labels *labels) {
    DimId size = dim_const(e->b->dims, 1);
    for (uint32_t k = 0; k < labels->n && size; k++)
        size = dim_mul(e->b->dims, size, joint_extent(e, a, c, labels->at[k]));
    return size;
}

/* Stretches the axes over which `term` and `other` are summed. */
static NodeId stretched(Einsum *e, NodeId x, const Term *term, const Term *other,
                        const Labels *order, uint64_t gone) {
    DimId extents[MAX_RANK];
    uint32_t n = 0;
    for (uint32_t k = 0; k < order->n; k++) {
        int label = order->at[k];
        if (find(&term->labels, label) == term->labels.n) continue;
        extents[n++] =
            gone & bit(label) ? joint_extent(e, term, other, label) : extent_of(e, term, label);
    }
    return build_expand(e->b, x, (DimList){n, extents});
}

/* The term as a matrix with the axes [lead.., first, last]. */
static NodeId as_matrix(Einsum *e, const Product *p, const Term *term, const Term *other,
                        const Labels *first, const Labels *last) {
    DimId to[MAX_RANK];
    Labels order = p->lead;
    append(&order, first);
    append(&order, last);
    NodeId x = permuted(e, term, &order);
    x = stretched(e, x, term, other, &order, set_of(&p->gone));
    uint32_t n = p->lead.n;
    for (uint32_t k = 0; k < n; k++) to[k] = extent_of(e, term, p->lead.at[k]);
    to[n] = size_of(e, term, other, first);
    to[n + 1] = size_of(e, term, other, last);
    return build_reshape(e->b, x, (DimList){n + 2, to});
}

static NodeId matrix_product(Einsum *e, const Product *p, const Labels *labels, const Term *a,
                             const Term *c) {
    DimId to[MAX_RANK];
    const Operand left = operand_tensor(as_matrix(e, p, a, c, &p->rows, &p->gone));
    const Operand right = operand_tensor(as_matrix(e, p, c, a, &p->gone, &p->columns));
    NodeId x = build_matmul(e->b, &left, &right, e->precision, e->out);
    for (uint32_t k = 0; k < labels->n; k++) to[k] = joint_extent(e, a, c, labels->at[k]);
    return build_reshape(e->b, x, (DimList){labels->n, to});
}

/* The term with an axis for each of the labels, of extent 1 where it has none. */
static Operand aligned(Einsum *e, const Term *term, const Labels *labels) {
    DimId to[MAX_RANK];
    for (uint32_t k = 0; k < labels->n; k++) to[k] = extent_of(e, term, labels->at[k]);
    NodeId x = widened(e, permuted(e, term, labels));
    return operand_tensor(build_reshape(e->b, x, (DimList){labels->n, to}));
}

static NodeId element_product(Einsum *e, const Labels *labels, const Term *a, const Term *c) {
    const Operand left = aligned(e, a, labels), right = aligned(e, c, labels);
    return build_eltwise(e->b, OP_MUL, 2, (const Operand[]){left, right});
}

/* The letters that `term` has alone: those at its end, side by side, are rows or columns; those
 * before are leading axes, if there is room. */
static void add_own(const Term *term, uint64_t own, uint32_t room, Labels *lead, Labels *last) {
    uint32_t end = term->labels.n, begin, n_before = 0;
    while (end && !(own & bit(term->labels.at[end - 1]))) end--;
    for (begin = end; begin && own & bit(term->labels.at[begin - 1]);) begin--;
    for (uint32_t k = 0; k < begin; k++) n_before += (own & bit(term->labels.at[k])) != 0;
    bool has_room = lead->n + n_before <= room;
    for (uint32_t k = 0; k < end; k++)
        if (own & bit(term->labels.at[k]))
            add(k < begin && has_room ? lead : last, term->labels.at[k]);
}

/* Whether the last letter of the result that one of the two has alone is one of the first. */
static bool is_turned(const Einsum *e, uint64_t own_a, uint64_t own_c) {
    for (uint32_t k = e->result.n; k-- > 0;)
        if ((own_a | own_c) & bit(e->result.at[k])) return own_c && own_a & bit(e->result.at[k]);
    return false;
}

static Product product_of(const Term *a, const Term *c, uint64_t needed) {
    enum { MAX_LEAD = 6 };
    Product p = {0};
    uint64_t in_a = set_of(&a->labels), in_c = set_of(&c->labels), both = in_a & in_c;
    for (uint32_t k = 0; k < a->labels.n; k++)
        if (both & bit(a->labels.at[k]))
            add(needed & bit(a->labels.at[k]) ? &p.lead : &p.gone, a->labels.at[k]);
    add_own(a, in_a & ~both, MAX_LEAD, &p.lead, &p.rows);
    add_own(c, in_c & ~both, MAX_LEAD, &p.lead, &p.columns);
    return p;
}

/* The product of two terms; `needed` are the letters of the terms behind them and the result. */
static Term joined(Einsum *e, Term a, Term c, uint64_t needed) {
    const Term none = {.x = NODE_NONE};
    uint64_t in_a = set_of(&a.labels), in_c = set_of(&c.labels);
    sum_unneeded(e, &a, needed | in_c);
    sum_unneeded(e, &c, needed | in_a);
    if (a.x == NODE_NONE || c.x == NODE_NONE) return none;
    if (graph_node(e->b->graph, a.x)->dtype != graph_node(e->b->graph, c.x)->dtype)
        a.x = widened(e, a.x), c.x = widened(e, c.x);
    if (is_turned(e, set_of(&a.labels) & ~in_c, set_of(&c.labels) & ~in_a)) {
        const Term left = a;
        a = c, c = left;
    }
    const Product p = product_of(&a, &c, needed);
    Term result = {.labels = p.lead};
    append(&result.labels, &p.rows);
    append(&result.labels, &p.columns);
    if (result.labels.n > MAX_RANK || (p.gone.n && p.lead.n + 2 >= MAX_RANK)) {
        build_fail(e->b, DIAG_LIMIT, (BuildPlace){0}, "a product has more than 15 axes");
        return none;
    }
    result.x = p.gone.n ? matrix_product(e, &p, &result.labels, &a, &c)
                        : element_product(e, &result.labels, &a, &c);
    return result;
}

/* The letters of the result and of the operands from `from` on. */
static uint64_t needed_from(const Einsum *e, uint32_t from) {
    uint64_t needed = set_of(&e->result);
    for (uint32_t i = from; i < e->n; i++) needed |= set_of(&e->terms[i].labels);
    return needed;
}

static bool add_terms(Einsum *e, const NodeId *xs) {
    for (uint32_t i = 0; i < e->n; i++) {
        if (xs[i] == NODE_NONE) return false;
        e->terms[i].x = xs[i];
    }
    return true;
}

NodeId build_einsum(Builder *b, const char *equation, uint32_t n, const NodeId *xs,
                    Precision precision, const Dtype *out) {
    Dtype dtype;
    Einsum e = {.b = b,
                .precision = precision,
                .out = out,
                .text = equation,
                .n = n,
                .terms = arena_array(b->arena, Term, n)};
    if (!add_terms(&e, xs) || !read_equation(&e) || !check_extents(&e) ||
        !build_check_out(b, (BuildPlace){0}, graph_node(b->graph, xs[0])->dtype, out, &dtype))
        return NODE_NONE;
    for (uint32_t i = 0; i < n; i++) take_diagonals(&e, &e.terms[i]);
    Term all = e.terms[0];
    for (uint32_t i = 1; i < n && all.x != NODE_NONE; i++)
        all = joined(&e, all, e.terms[i], needed_from(&e, i + 1));
    sum_unneeded(&e, &all, set_of(&e.result));
    NodeId x = widened(&e, permuted(&e, &all, &e.result));
    if (x == NODE_NONE) b->errors.data[b->errors.n - 1].at = (BuildPlace){0};
    return x;
}
