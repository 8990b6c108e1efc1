/* Programs for each template: what it computes, with random work in front of it and behind it. See
 * shapes.h. */
#include "shapes_maker.h"

/* Reductions. */

static Value reduced(Maker *m, Value v, uint32_t axis, const char *rest) {
    bool is_wide = is_float(v.dtype);
    uint32_t kind = rng_below(&m->rng, is_wide ? 8 : 3);
    Axes one = AXES(rest), all = v.axes;
    switch (kind) {
    case 0:
        return bind(m, v.dtype, one, "sum(%s, axis=%u)", v.name, axis);
    case 1:
        return bind(m, v.dtype, one, "%s(%s, axis=%u)", PICK(m, "max", "min"), v.name, axis);
    case 2:
        return bind(m, DT_I32, one, "%s(%s, axis=%u)", PICK(m, "argmax", "argmin"), v.name, axis);
    case 3:
        return bind(m, v.dtype, all, "softmax(%s, axis=%u)", v.name, axis);
    case 4:
        return bind(m, v.dtype, all, "log_softmax(%s, axis=%u)", v.name, axis);
    case 5:
        return bind(m, v.dtype, one, "var(%s, axis=%u)", v.name, axis);
    case 6:
        return bind(m, v.dtype, one, "logsumexp(%s, axis=%u)", v.name, axis);
    default:
        return bind(m, v.dtype, all, "%s - mean(%s, axis=%u, keep=true)", v.name, v.name, axis);
    }
}

/* Another tensor is reduced too, and meets the first. */
static void add_second(Maker *m, Value first, uint32_t axis) {
    Value other = unary(m, input(m, first.dtype, first.axes));
    Value most = bind(m, other.dtype, other.axes, "max(%s, axis=%u, keep=true)", other.name, axis);
    output(m, bind(m, first.dtype, first.axes, "%s * %s", first.name, most.name));
}

/* All of a matrix, or what is left without its first columns. */
static Value input_or_slice(Maker *m, Axes axes) {
    if (rng_chance(&m->rng, 80)) return input(m, m->dtype, axes);
    uint32_t n_ahead = 1 + rng_below(&m->rng, 8);
    const char *columns = str_format(m->arena, "%s + %u", axes.of[1], n_ahead);
    Value whole = input(m, m->dtype, AXES(axes.of[0], columns));
    return bind(m, m->dtype, axes, "%s[:, %u:]", whole.name, n_ahead);
}

/* Over rows or columns, with what is done to elements before, and perhaps twice. */
static const char *reduction(Maker *m, Axes axes, uint32_t axis) {
    Value v = chain(m, input_or_slice(m, axes), rng_below(&m->rng, 3));
    finish(m, reduced(m, v, axis, axes.of[1 - axis]));
    if (rng_chance(&m->rng, 40)) output(m, reduced(m, v, axis, axes.of[1 - axis]));
    if (rng_chance(&m->rng, 25)) add_second(m, v, axis);
    return source(m);
}

static const char *make_row_warp(Maker *m) {
    dim(m, "R", 1, 4096, 1), dim(m, "C", 0, 1024, rng_chance(&m->rng, 25) ? 8 : 1);
    return reduction(m, AXES("R", "C"), 1);
}

static const char *make_row_block(Maker *m) {
    dim(m, "R", 1, 512, 1), dim(m, "C", 1025, 8192, rng_chance(&m->rng, 25) ? 8 : 1);
    return reduction(m, AXES("R", "C"), 1);
}

static const char *make_row_slots(Maker *m) {
    return dim(m, "R", 1, 512, 1), reduction(m, AXES("R", number(m, 17, 4095)), 1);
}

static const char *make_row_cluster(Maker *m) {
    dim(m, "R", 1, 96, 1);
    return reduction(m, AXES("R", number(m, 16390, 32760)), 1);
}

static const char *make_row_loop(Maker *m) {
    dim(m, "R", 1, 64, 1), dim(m, "C", 4097, 65536, 1);
    return reduction(m, AXES("R", "C"), 1);
}

/* Those who make partial results may store elements too. */
static const char *single_pass(Maker *m, Axes axes, uint32_t axis) {
    Value v = chain(m, input(m, m->dtype, axes), rng_below(&m->rng, 3));
    if (rng_chance(&m->rng, 40)) output(m, unary(m, v));
    if (rng_chance(&m->rng, 20)) output(m, v);
    const char *op = PICK(m, "sum", "max", "min");
    finish(m, bind(m, v.dtype, AXES(axes.of[1 - axis]), "%s(%s, axis=%u)", op, v.name, axis));
    return source(m);
}

static const char *make_row_segments(Maker *m) {
    dim(m, "R", 1, 40, 1), dim(m, "C", 1, 1 << 18, 1);
    return single_pass(m, AXES("R", "C"), 1);
}

static const char *make_column(Maker *m) {
    dim(m, "N", 1, 256, 1), dim(m, "M", 1, 4096, rng_chance(&m->rng, 25) ? 8 : 1);
    return reduction(m, AXES("N", "M"), 0);
}

/* Every third long enough that there are segments of segments. */
static const char *make_column_segments(Maker *m) {
    uint32_t kind = (uint32_t)rng_below(&m->rng, 100);
    bool is_long = kind < 33, has_one_pass = kind % 2 == 0;
    dim(m, "N", 1, is_long ? 1 << 18 : 8192, 1), dim(m, "M", 1, is_long ? 48 : 2048, 1);
    return (has_one_pass ? single_pass : reduction)(m, AXES("N", "M"), 0);
}

/* Products. */

typedef struct Product {
    const char *batch, *m, *n, *k; /* extents; batch NULL: one matrix */
    bool is_plain;                 /* operands are inputs as they are */
    bool is_along_k;               /* both operands; f32 is rounded to tf32 */
} Product;

/* Matrices of the one batch, or of all. */
static Axes matrix(const Product *p, const char *rows, const char *columns, bool has_batch) {
    return p->batch && has_batch ? AXES(p->batch, rows, columns) : AXES(rows, columns);
}

/* An extent that may be made of two: so many, and the rest. */
#define PIECE "16"
static const char *longer(Maker *m, const char *extent) {
    return str_format(m->arena, "%s + " PIECE, extent);
}

/* Of the two pieces of a matrix with such an extent along `axis`, the second an input or zeros. */
static Value pieces(Maker *m, Axes whole, uint32_t axis, const char *plus) {
    Axes first = whole, second = whole;
    first.of[axis] = str_format(m->arena, "%.*s", (int)(plus - whole.of[axis]), whole.of[axis]);
    second.of[axis] = PIECE;
    const char *name = input(m, m->dtype, first).name;
    if (rng_chance(&m->rng, 50))
        return bind(m, m->dtype, whole, "concat([%s, %s], axis=%u)", name,
                    input(m, m->dtype, second).name, axis);
    Text high = {.arena = m->arena}, low = {.arena = m->arena};
    for (uint32_t k = 0; k < whole.n; k++) {
        text_printf(&low, "%s0", k ? ", " : "");
        text_printf(&high, "%s%s", k ? ", " : "", k == axis ? PIECE : "0");
    }
    return bind(m, m->dtype, whole, "pad(%s, low=[%s], high=[%s])", name, text_str(&low),
                text_str(&high));
}

static Value matrix_input(Maker *m, const Product *p, Axes axes) {
    for (uint32_t k = 0; k < axes.n && !p->is_plain; k++) {
        const char *plus = strstr(axes.of[k], " + " PIECE);
        if (plus && rng_chance(&m->rng, 60)) return pieces(m, axes, k, plus);
    }
    return input(m, m->dtype, axes);
}

static Value matrix_operand(Maker *m, const Product *p, Axes axes, bool is_transposed) {
    Axes there = axes;
    uint32_t last = axes.n - 1;
    if (is_transposed) there.of[last] = axes.of[last - 1], there.of[last - 1] = axes.of[last];
    Value v = matrix_input(m, p, there);
    if (!p->is_plain && rng_chance(&m->rng, 30)) v = binary(m, v);
    if (!is_transposed) return v;
    return bind(m, v.dtype, axes, "transpose(%s, perm=%s)", v.name,
                axes.n == 2 ? "[1, 0]" : "[0, 2, 1]");
}

static Value left_operand(Maker *m, const Product *p) {
    bool is_transposed = !p->is_along_k && rng_chance(&m->rng, 25);
    return matrix_operand(m, p, matrix(p, p->m, p->k, true), is_transposed);
}

static Value right_operand(Maker *m, const Product *p) {
    bool is_transposed = p->is_along_k || rng_chance(&m->rng, 40);
    return matrix_operand(m, p, matrix(p, p->k, p->n, rng_chance(&m->rng, 60)), is_transposed);
}

static Value times(Maker *m, const Product *p, Value a, Value b) {
    return bind(m, a.dtype, matrix(p, p->m, p->n, true), "matmul(%s, %s, precision=\"%s\")", a.name,
                b.name, p->is_along_k && a.dtype == DT_F32 ? "tf32" : "full");
}

static Value product(Maker *m, const Product *p) {
    Value a = left_operand(m, p);
    return times(m, p, a, right_operand(m, p));
}

/* The product in the dtype in which it is computed, where that is another, or in its operands'. */
static Value times_last(Maker *m, const Product *p, Value a, Value b) {
    Dtype out = dtype_compute(a.dtype);
    if (out == a.dtype || rng_chance(&m->rng, 60)) return times(m, p, a, b);
    return bind(m, out, matrix(p, p->m, p->n, true), "matmul(%s, %s, out=%s)", a.name, b.name,
                dtype_name(out));
}

static const char *product_alone(Maker *m, const Product *p) {
    Value a = left_operand(m, p);
    finish(m, times_last(m, p, a, right_operand(m, p)));
    return source(m);
}

static const char *maybe_batch(Maker *m, int hi) {
    if (rng_chance(&m->rng, 70)) return NULL;
    dim(m, "B", 1, hi, 1);
    return "B";
}

/* Pieces may meet where vectors do. */
static const char *make_simt(Maker *m) {
    Product p = {maybe_batch(m, 16), "M", "N", "K", false, false};
    bool is_long = rng_chance(&m->rng, 40);
    int multiple = is_long && rng_chance(&m->rng, 70) ? 16 : 1;
    dim(m, "M", 1, 1500, multiple), dim(m, "N", 1, 1500, multiple);
    dim(m, "K", 1, 2048, multiple);
    if (is_long) p.m = longer(m, "M"), p.n = longer(m, "N"), p.k = longer(m, "K");
    return product_alone(m, &p);
}

static const char *make_mma(Maker *m) {
    Product p = {maybe_batch(m, 16), "M", "N", "K", false, true};
    dim(m, "M", 1, 1500, 1), dim(m, "N", 1, 1500, 1), dim(m, "K", 1, 2048, 1);
    return product_alone(m, &p);
}

/* Rows of whole accesses, as sources promise them or as sizes happen to be. */
static const char *make_wgmma(Maker *m) {
    bool is_along_k = dtype_bytes(m->dtype) != 2;
    int multiple = rng_chance(&m->rng, 60) ? 8 : 1;
    Product p = {maybe_batch(m, 4), "M", "N", "K", true, is_along_k};
    dim(m, "M", 33, 2048, 1), dim(m, "N", 16, 2048, multiple), dim(m, "K", 16, 2048, multiple);
    return product_alone(m, &p);
}

/* An operand of 8-bit floats: an input, or rounded from another. */
static Value f8_operand(Maker *m, Dtype dtype, Axes axes, bool is_transposed, bool is_plain) {
    Axes there = axes;
    uint32_t last = axes.n - 1;
    if (is_transposed) there.of[last] = axes.of[last - 1], there.of[last - 1] = axes.of[last];
    bool is_rounded = !is_plain && rng_chance(&m->rng, 25);
    Value v = input(m, is_rounded ? DT_BF16 : dtype, there);
    if (is_rounded) v = bind(m, dtype, there, "cast(%s, %s)", unary(m, v).name, dtype_name(dtype));
    if (!is_transposed) return v;
    return bind(m, dtype, axes, "transpose(%s, perm=%s)", v.name,
                axes.n == 2 ? "[1, 0]" : "[0, 2, 1]");
}

/* The product in f32, perhaps of different dtypes, or in the operands' dtype; a scale; a cast. */
static const char *f8_product(Maker *m, const Product *p) {
    Dtype left = m->dtype, right = left;
    if (rng_chance(&m->rng, 30)) right = left == DT_F8E4M3 ? DT_F8E5M2 : DT_F8E4M3;
    bool is_wide = left != right || rng_chance(&m->rng, 80);
    bool turns_left = !p->is_along_k && rng_chance(&m->rng, 25);
    bool turns_right = p->is_along_k || rng_chance(&m->rng, 50);
    Axes rhs = matrix(p, p->k, p->n, rng_chance(&m->rng, 60)), out = matrix(p, p->m, p->n, true);
    Value a = f8_operand(m, left, matrix(p, p->m, p->k, true), turns_left, p->is_plain);
    Value b = f8_operand(m, right, rhs, turns_right, p->is_plain);
    Value y = bind(m, is_wide ? DT_F32 : left, out, "matmul(%s, %s%s)", a.name, b.name,
                   is_wide ? ", out=f32" : "");
    if (!is_wide) {
        output(m, y);
        return source(m);
    }
    if (rng_chance(&m->rng, 60))
        y = bind(m, y.dtype, out, "%s * %s", y.name, input(m, DT_F32, AXES(p->n)).name);
    if (rng_chance(&m->rng, 50)) y = bind(m, DT_BF16, out, "cast(%s, bf16)", y.name);
    finish(m, y);
    return source(m);
}

static const char *make_f8_mma(Maker *m) {
    Product p = {maybe_batch(m, 16), "M", "N", "K", false, false};
    int multiple = rng_chance(&m->rng, 40) ? 16 : 1;
    dim(m, "M", 1, 1500, 1), dim(m, "N", 1, 1500, multiple), dim(m, "K", 1, 2048, multiple);
    return f8_product(m, &p);
}

static const char *make_f8_wgmma(Maker *m) {
    Product p = {maybe_batch(m, 4), "M", "N", "K", true, true};
    dim(m, "M", 17, 2048, 1), dim(m, "N", 16, 2048, rng_chance(&m->rng, 60) ? 8 : 1);
    dim(m, "K", 16, 2048, 16);
    return f8_product(m, &p);
}

static const char *gated_pair(Maker *m, const Product *p) {
    Value x = input(m, m->dtype, AXES(p->m, p->k));
    Value a = times_last(m, p, x, input(m, m->dtype, AXES(p->k, p->n)));
    Value b = times_last(m, p, x, input(m, m->dtype, AXES(p->k, p->n)));
    if (a.dtype != b.dtype) {
        output(m, unary(m, a));
        output(m, b);
        return source(m);
    }
    finish(m, bind(m, b.dtype, b.axes, "%s * %s", unary(m, a).name, b.name));
    return source(m);
}

/* A known extent of so many times 8. */
static const char *eights(Maker *m, int lo, int hi) {
    return str_format(m->arena, "%d", (int)rng_between(&m->rng, lo, hi) * 8);
}

/* Where extents are known, tiles have any width that the price likes. */
static const char *make_dual_gemm(Maker *m) {
    Product p = {NULL, "M", "N", "K", true, false};
    if (rng_chance(&m->rng, 50)) {
        p.m = number(m, 300, 1500), p.n = eights(m, 50, 280), p.k = eights(m, 2, 16);
        return gated_pair(m, &p);
    }
    dim(m, "M", 33, 1024, 1), dim(m, "N", 16, 1024, 8), dim(m, "K", 16, 1024, 8);
    return gated_pair(m, &p);
}

/* Known extents: most of a wave of wide tiles, and a few columns more, of which those who have none
 * of the wave take two tiles each. */
static const char *make_wgmma_tail(Maker *m) {
    bool is_f32 = m->dtype == DT_F32, is_pair = !is_f32 && rng_chance(&m->rng, 20);
    int across = (int)rng_between(&m->rng, 2, 8), down = 264 / (2 * across + 1);
    bool has_batch = !is_pair && across < 6 && rng_chance(&m->rng, 30);
    int rows = down / (has_batch ? 2 : 1) * 128 - (int)rng_between(&m->rng, 0, 30);
    int columns = (is_pair ? 128 : 256) * across + (int)rng_between(&m->rng, 1, 3) * 8;
    Product p = {.batch = has_batch ? "2" : NULL, .is_plain = true, .is_along_k = is_f32};
    p.m = str_format(m->arena, "%d", rows);
    p.n = str_format(m->arena, "%d", columns);
    p.k = eights(m, 8, 24);
    return is_pair ? gated_pair(m, &p) : product_alone(m, &p);
}

/* Known extents: small products that are several for each block, or a few waves of tiles. */
static const char *make_wgmma_store(Maker *m) {
    bool is_pair = rng_chance(&m->rng, 20), is_small = !is_pair && rng_chance(&m->rng, 60);
    Product p = {.is_plain = true};
    p.batch = is_small ? number(m, 140, 300) : NULL;
    p.m = is_small ? number(m, 33, 140) : number(m, 2900, 4200);
    p.n = is_small ? eights(m, 8, 20) : eights(m, 256, 300);
    p.k = is_small ? eights(m, 16, 40) : eights(m, 80, 160);
    return is_pair ? gated_pair(m, &p) : product_alone(m, &p);
}

/* One row times a matrix, or a matrix times one column. */
static const char *gemv_product(Maker *m, bool is_row, bool is_transposed) {
    Product p = {NULL, is_row ? "1" : "N", is_row ? "N" : "1", "K", false, false};
    dim(m, "N", 1, 4096, rng_chance(&m->rng, 30) ? 8 : 1);
    dim(m, "K", 1, 8192, rng_chance(&m->rng, 30) ? 8 : 1);
    Value a = matrix_operand(m, &p, AXES(p.m, p.k), !is_row && is_transposed);
    finish(m, times_last(m, &p, a, matrix_operand(m, &p, AXES(p.k, p.n), is_row && is_transposed)));
    return source(m);
}

static const char *make_gemv_k(Maker *m) {
    bool is_row = rng_chance(&m->rng, 50);
    return gemv_product(m, is_row, is_row);
}

static const char *make_gemv_n(Maker *m) {
    bool is_row = rng_chance(&m->rng, 50);
    return gemv_product(m, is_row, !is_row);
}

static const char *make_gemv_cluster(Maker *m) {
    return make_gemv_n(m);
}

/* Few outputs of a long k; of a batch, or of a number of rows that runs know. */
static const char *make_split_k(Maker *m) {
    Product p = {
        .m = number(m, 2, 24), .n = number(m, 1, 24), .is_along_k = rng_chance(&m->rng, 30)};
    p.k = rng_chance(&m->rng, 70) ? eights(m, 600, 1500) : number(m, 5000, 12000);
    if (rng_chance(&m->rng, 20)) p.batch = number(m, 2, 3);
    if (rng_chance(&m->rng, 20)) dim(m, "M", 1, 24, 1), p.m = "M";
    return product_alone(m, &p);
}

/* Too small for a tile: many of a batch, or very many rows. */
static const char *tiny_product(Maker *m) {
    Product p = {.m = number(m, 1, 8), .n = number(m, 1, 8), .k = number(m, 1, 16)};
    bool has_rows = rng_chance(&m->rng, 30);
    dim(m, "B", 1, has_rows ? 1 << 23 : 1 << 17, 1);
    if (has_rows)
        p = (Product){.m = "B", .n = number(m, 2, 4), .k = number(m, 1, 4)};
    else
        p.batch = "B";
    return product_alone(m, &p);
}

static const char *make_naive(Maker *m) {
    if (rng_chance(&m->rng, 60)) return tiny_product(m);
    Product p = {maybe_batch(m, 8), "M", "N", "1", false, false};
    dim(m, "M", 1, 2048, 1), dim(m, "N", 1, 2048, 1);
    return product_alone(m, &p);
}

/* Softmax and product: scores that elementwise ops make, some of them hidden. */
static const char *make_online(Maker *m) {
    Product p = {maybe_batch(m, 8), "M", "C", "N", false, false};
    dim(m, "M", 1, 300, 1), dim(m, "N", 1, 1100, rng_chance(&m->rng, 40) ? 128 : 1);
    dim(m, "C", 1, 300, rng_chance(&m->rng, 60) ? 8 : 1);
    Axes of_scores = matrix(&p, p.m, p.k, true);
    Value x = chain(m, input(m, dtype_compute(m->dtype), of_scores), rng_below(&m->rng, 3));
    Value v = input(m, m->dtype, matrix(&p, p.k, p.n, rng_chance(&m->rng, 60)));
    Dtype scores = dtype_compute(m->dtype);
    if (x.dtype != scores)
        x = bind(m, scores, of_scores, "cast(%s, %s)", x.name, dtype_name(scores));
    if (rng_chance(&m->rng, 40))
        x = bind(m, x.dtype, of_scores,
                 "where(iota([M, N], axis=1) <= iota([M, N], axis=0) + %u, %s, -inf)",
                 rng_below(&m->rng, 400), x.name);
    finish(m, bind(m, m->dtype, matrix(&p, p.m, p.n, true), "%s(%s, %s)",
                   PICK(m, "softmax_matmul", "softmax2_matmul"), x.name, v.name));
    return source(m);
}

/* Products of one input by several matrices of one shape. */
static const char *make_parallel(Maker *m) {
    const char *n = number(m, 1, 200);
    Product p = {NULL, "M", n, "K", true, false};
    dim(m, "M", 1, 700, 1), dim(m, "K", 1, 1024, rng_chance(&m->rng, 40) ? 8 : 1);
    Value x = input(m, m->dtype, AXES("M", "K"));
    uint32_t n_parts = 2 + rng_below(&m->rng, 2);
    for (uint32_t i = 0; i < n_parts; i++)
        output(m, times_last(m, &p, x, input(m, m->dtype, AXES("K", n))));
    return source(m);
}

/* Products of one input of `k` columns that differ in width and in what follows. */
static void mixed_products(Maker *m, const char *k, uint32_t n_parts, int most, int multiple) {
    Value x = input(m, m->dtype, AXES("M", k));
    for (uint32_t i = 0; i < n_parts; i++) {
        int64_t n = rng_between(&m->rng, 1, most / multiple) * multiple;
        Product p = {NULL, "M", str_format(m->arena, "%d", (int)n), k, true, false};
        Value y = times(m, &p, x, input(m, m->dtype, AXES(k, p.n)));
        output(m, i ? chain(m, y, i) : y);
    }
}

/* Products, elements or rows: each launch is of one kind. */
static const char *make_parallel_mixed(Maker *m) {
    uint32_t kind = rng_below(&m->rng, 3), n_parts = 2 + rng_below(&m->rng, 2);
    dim(m, "M", 1, 700, 1), dim(m, "K", 1, 1024, rng_chance(&m->rng, 40) ? 8 : 1);
    if (kind == 0) mixed_products(m, "K", n_parts, 300, 1);
    for (uint32_t i = 0; i < n_parts && kind > 0; i++) {
        Value v = chain(m, input(m, m->dtype, AXES("M", "K")), i + 1);
        output(m, kind == 1 ? v : bind(m, v.dtype, AXES("M"), "max(%s, axis=1)", v.name));
    }
    return source(m);
}

static const char *make_wgmma_parallel(Maker *m) {
    dim(m, "M", 33, 4096, 1), dim(m, "K", 16, 512, rng_chance(&m->rng, 80) ? 8 : 1);
    mixed_products(m, "K", 2 + rng_below(&m->rng, 2), 1024, 8);
    return source(m);
}

/* A few waves of tiles, each with many steps of a known k. */
static const char *make_wgmma_parallel_store(Maker *m) {
    dim(m, "M", 33, 4096, 1);
    mixed_products(m, eights(m, 60, 120), 2 + rng_below(&m->rng, 2), 400, 8);
    return source(m);
}

/* Columns of rows that a tile may hold: a number, or a dim whose range says so. */
static const char *row_of_tile(Maker *m, int multiple) {
    int most = m->dtype == DT_F64 ? 128 : 256;
    if (rng_chance(&m->rng, 60)) return number(m, 2, most);
    dim(m, "N", 1, most, multiple);
    return "N";
}

/* Rows may be the lhs of another product, which wants them so far apart. */
static void finish_rows(Maker *m, const Product *p, Value rows) {
    bool is_matrix = rows.axes.n == 2 && is_float(rows.dtype) && rng_chance(&m->rng, 50);
    Product next = {NULL, p->m, number(m, 2, 64), p->n, true, p->is_along_k};
    finish(m, is_matrix ? times(m, &next, rows, right_operand(m, &next)) : rows);
}

/* One or two outputs, made of whole rows of a product in the kernel of the product. */
static const char *rows_in_tiles(Maker *m, const Product *p) {
    Value a = left_operand(m, p), b = right_operand(m, p);
    text_puts(&m->body, "  fuse must {\n");
    Value h = times(m, p, a, b);
    if (rng_chance(&m->rng, 50)) h = binary(m, h);
    Value r = reduced(m, h, h.axes.n - 1, "M");
    text_puts(&m->body, "  }\n");
    if (rng_chance(&m->rng, 20)) output(m, h);
    finish_rows(m, p, r);
    return source(m);
}

/* Whole rows of a product in one tile, and what is made of them: where the price says so, or must.
 */
static const char *make_sequence_rows(Maker *m) {
    const char *n = number(m, 2, 64);
    Product p = {NULL, "M", n, "K", rng_chance(&m->rng, 50), false};
    dim(m, "M", 1, 2048, 1), dim(m, "K", 1, 1024, 1);
    if (rng_chance(&m->rng, 50)) return rows_in_tiles(m, &p);
    Value h = binary(m, product(m, &p));
    finish_rows(m, &p, reduced(m, h, 1, "M"));
    return source(m);
}

static const char *make_sequence_wide(Maker *m) {
    dim(m, "M", 1, 1000, 1), dim(m, "K", 1, 700, 1);
    Product p = {
        NULL, "M", row_of_tile(m, 1), "K", rng_chance(&m->rng, 50), rng_chance(&m->rng, 50)};
    return rows_in_tiles(m, &p);
}

static const char *make_sequence_wgmma(Maker *m) {
    int multiple = rng_chance(&m->rng, 70) ? 8 : 1;
    dim(m, "M", 33, 20000, 1), dim(m, "K", 16, 700, multiple);
    Product p = {NULL, "M", row_of_tile(m, multiple), "K", true, true};
    return rows_in_tiles(m, &p);
}

/* Two products of one shape that meet, of one lhs or two; the first may be an output too.
 */
static const char *make_sequence_product(Maker *m) {
    dim(m, "M", 1, 900, 1), dim(m, "N", 1, 900, 1), dim(m, "K", 1, 700, 1);
    Product p = {maybe_batch(m, 6), "M", "N", "K", rng_chance(&m->rng, 50), false};
    bool is_one = rng_chance(&m->rng, 60);
    Value left = left_operand(m, &p);
    Value a = unary(m, times(m, &p, left, right_operand(m, &p)));
    if (rng_chance(&m->rng, 30)) output(m, a);
    if (!is_one) left = left_operand(m, &p);
    Value b = times(m, &p, left, right_operand(m, &p));
    finish(m, bind(m, a.dtype, a.axes, "%s %s %s", a.name, PICK(m, "*", "+", "-"), b.name));
    return source(m);
}

/* A rhs for each matrix of the batch, so that none has its rows beside another's. */
static Value own_operand(Maker *m, const Product *p) {
    return matrix_operand(m, p, matrix(p, p->k, p->n, true), rng_chance(&m->rng, 40));
}

/* Rows of a product that another product takes, and that are nowhere whole. */
static const char *make_gemm_rows_gemm(Maker *m) {
    Product first = {maybe_batch(m, 4),       "M",  "N", number(m, 2, 128),
                     rng_chance(&m->rng, 50), false};
    Product second = first;
    second.n = number(m, 2, 128), second.k = "N";
    dim(m, "M", 1, 700, 1), dim(m, "N", 2, 3000, 2);
    Value a = left_operand(m, &first), b = own_operand(m, &first), c = own_operand(m, &second);
    Value gamma = input(m, m->dtype, AXES("N"));
    bool holds_gemm = rng_chance(&m->rng, 40);
    text_puts(&m->body, "  fuse must {\n");
    Value h = times(m, &first, a, b);
    if (rng_chance(&m->rng, 50)) h = binary(m, h);
    Value r = rng_chance(&m->rng, 25)
                  ? bind(m, h.dtype, h.axes, "rmsnorm(%s, %s)", h.name, gamma.name)
                  : bind(m, h.dtype, h.axes, "%s(%s)", PICK(m, "softmax", "log_softmax"), h.name);
    if (!holds_gemm) text_puts(&m->body, "  }\n");
    Value y = times(m, &second, r, c);
    if (holds_gemm) text_puts(&m->body, "  }\n");
    finish(m, y);
    return source(m);
}

/* A product whose rows go into a softmax and product, and are nowhere whole. */
static const char *make_gemm_online(Maker *m) {
    Product first = {maybe_batch(m, 4),       "M",  "N", number(m, 2, 128),
                     rng_chance(&m->rng, 50), false};
    Product second = first;
    second.n = number(m, 1, 128), second.k = "N";
    dim(m, "M", 1, 700, 1), dim(m, "N", 2, 3000, 2);
    Value a = left_operand(m, &first), b = own_operand(m, &first), c = own_operand(m, &second);
    text_puts(&m->body, "  fuse must {\n");
    Value h = times(m, &first, a, b);
    Value x = bind(m, DT_F32, h.axes, "cast(%s, f32)", h.name);
    if (rng_chance(&m->rng, 50))
        x = bind(m, DT_F32, h.axes,
                 "where(iota([M, N], axis=1) <= iota([M, N], axis=0) + %u, %s, -inf)",
                 rng_below(&m->rng, 400), x.name);
    Value y = bind(m, m->dtype, matrix(&second, second.m, second.n, true), "%s(%s, %s)",
                   PICK(m, "softmax_matmul", "softmax2_matmul"), x.name, c.name);
    text_puts(&m->body, "  }\n");
    finish(m, y);
    return source(m);
}

static Value apart(Maker *m, Value v, Value (*step)(Maker *, Value)) {
    text_puts(&m->body, "  fuse never {\n");
    v = step(m, v);
    text_puts(&m->body, "  }\n");
    return v;
}

/* Rows or columns that are gone over in two passes. */
static Value twice(Maker *m, Value v) {
    return bind(m, v.dtype, v.axes, "%s - max(%s, axis=%u, keep=true)", v.name, v.name,
                (uint32_t)rng_below(&m->rng, 2));
}

/* Temporaries of one size, each made of the one before, by a map, over rows or columns, or in a
 * product's epilogue. */
static const char *make_in_place(Maker *m) {
    dim(m, "M", 1, 1200, 1), dim(m, "N", 1, 1200, 1), dim(m, "K", 1, 300, 1);
    Product p = {NULL, "M", "N", "K", true, false};
    Value v = apart(m, input(m, m->dtype, AXES("M", "N")), unary);
    if (rng_chance(&m->rng, 50))
        v = apart(m, v, binary);
    else
        v = bind(m, v.dtype, v.axes, "%s + %s", product(m, &p).name, v.name);
    v = rng_chance(&m->rng, 50) ? twice(m, v) : apart(m, v, unary);
    output(m, apart(m, v, binary));
    return source(m);
}

/* A small perceptron: all extents are known. Several rows of 16 bits go to tensor cores, which
 * no one-block launch uses. */
static const char *make_one_block(Maker *m) {
    bool is_half = DTS_HALF >> m->dtype & 1;
    const char *rows = is_half ? "1" : number(m, 1, 16), *width = number(m, 1, 128);
    Value v = input(m, m->dtype, AXES(rows, width));
    uint32_t n_layers = 2 + rng_below(&m->rng, 2);
    for (uint32_t i = 0; i < n_layers; i++) {
        const char *next = number(m, 1, 128);
        Product p = {NULL, rows, next, width, true, false};
        v = times(m, &p, v, input(m, m->dtype, AXES(width, next)));
        v = unary(m,
                  bind(m, v.dtype, v.axes, "%s + %s", v.name, input(m, m->dtype, AXES(next)).name));
        width = next;
    }
    if (rng_chance(&m->rng, 50)) v = bind(m, v.dtype, v.axes, "softmax(%s, axis=1)", v.name);
    output(m, v);
    return source(m);
}

/* Rows that the copy engine cannot follow. */
static const char *make_copy(Maker *m) {
    Product p = {maybe_batch(m, 3), "M", "N", "K", true, false};
    dim(m, "M", 33, 1200, 1), dim(m, "N", 33, 1200, 1), dim(m, "K", 257, 2000, 1);
    return product_alone(m, &p);
}

/* Params: as they are, and with what they alone determine. */
static const char *param_product(Maker *m, const char *n, const char *k) {
    Product p = {NULL, "M", n, k, true, false};
    dim(m, "M", 1, 700, 1);
    Value x = input(m, m->dtype, AXES("M", k));
    Value w = param(m, m->dtype, AXES(k, n));
    Value y = times(m, &p, x, w);
    Value norm = bind(m, w.dtype, AXES("1", n), "sum(abs(%s), axis=[0], keep=true)", w.name);
    if (rng_chance(&m->rng, 70))
        y = bind(m, y.dtype, y.axes, "%s %s %s", y.name, PICK(m, "*", "+", "-"), norm.name);
    finish(m, y);
    return source(m);
}

static const char *make_init(Maker *m) {
    dim(m, "N", 1, 600, 1), dim(m, "K", 1, 600, 1);
    return param_product(m, "N", "K");
}

static const char *make_layout(Maker *m) {
    int64_t n = rng_between(&m->rng, 8, 300);
    const char *odd = str_format(m->arena, "%d", 2 * (int)n + 1);
    return param_product(m, odd, number(m, 16, 600));
}

/* A product, elements and what is reduced side by side. */
static const char *make_concat_in_place(Maker *m) {
    Product p = {NULL, "M", "N", "K", rng_chance(&m->rng, 50), false};
    dim(m, "M", 1, 900, 1), dim(m, "N", 1, 900, 1), dim(m, "K", 1, 700, 1);
    Value a = binary(m, product(m, &p));
    Value b = unary(m, input(m, m->dtype, AXES("M", "K")));
    if (rng_chance(&m->rng, 50)) {
        Value first = b;
        b = a, a = first;
    }
    output(m, bind(m, a.dtype, AXES("M", "N + K"), "concat([%s, %s], axis=1)", a.name, b.name));
    return source(m);
}

const char *lowering_source(Arena *arena, LoweringId id, uint64_t number) {
    static const char *(*const families[])(Maker *) = {
#define LOWERING(sym, name, gpu, cpu, dtypes, family, needs, seed, doc) make_##family,
#include "lowerings.def"
    };
    uint64_t seed = lowering_info(id)->seed;
    Maker m = {.arena = arena, .rng = rng_new(seed ^ number * 0x9E3779B97F4A7C15u)};
    Text *texts[] = {&m.dims, &m.inputs, &m.params, &m.body, &m.outputs};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) texts[i]->arena = arena;
    /* Program after program has the next dtype. */
    uint32_t n_dtypes = 0, n_skipped;
    for (Dtype d = 0; d < DT_COUNT; d++) n_dtypes += lowering_info(id)->dtypes >> d & 1;
    n_skipped = (uint32_t)(number % n_dtypes);
    while (!(lowering_info(id)->dtypes >> m.dtype & 1) || n_skipped--) m.dtype++;
    return families[id](&m);
}
