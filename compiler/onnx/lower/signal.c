/* Fourier transforms, as products with tables of sines and cosines, and windows of samples. */
#include "onnx/call/import_state.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

typedef struct Fourier {
    int64_t n_in, n_out, length;
    bool is_inverse, is_onesided;
} Fourier;

/* cos or sin of 2 pi j k / length, [n_in, n_out], with the weights of an inverse transform: those
 * of a one-sided spectrum count twice, but for the first, and the last of an even length. */
static NodeId wave_table(Call *c, const Fourier *f, double (*wave)(double), Dtype dtype) {
    int64_t dims[2] = {f->n_in, f->n_out};
    double *values = arena_array(c->im->arena, double, (size_t)(f->n_in * f->n_out) + 1);
    for (int64_t j = 0; j < f->n_in; j++)
        for (int64_t k = 0; k < f->n_out; k++) {
            bool counts_once = !f->is_onesided || j == 0 || 2 * j == f->length;
            double scale = f->is_inverse ? (counts_once ? 1.0 : 2.0) / (double)f->length : 1;
            int64_t turn = j * k % f->length;
            values[j * f->n_out + k] = scale * wave(2 * pi * (double)turn / (double)f->length);
        }
    return table_node(c, dtype, 2, dims, values);
}

/* All axes but the last n. */
static uint32_t batch_axes(const Call *c, NodeId x, uint32_t n) {
    uint32_t rank = x == NODE_NONE ? 0 : shape_of(c, x)->rank;
    return rank > n ? (1u << (rank - n)) - 1 : 0;
}

/* x: [.., n, 1 or 2], real numbers or pairs -> [.., n_out, 1 or 2] */
static NodeId transformed(Call *c, NodeId x, Fourier f) {
    int64_t extents[MAX_RANK];
    enum { MAX_TABLE = 1 << 22 };
    if (!const_dims_but(c, x, batch_axes(c, x, 2), extents)) return NODE_NONE;
    uint32_t last = shape_of(c, x)->rank - 1;
    bool is_real_out = f.is_inverse && f.is_onesided;
    if (f.length < 1 || f.length > MAX_TABLE || extents[last - 1] > MAX_TABLE ||
        extents[last] < 1 || extents[last] > 2) {
        onnx_fail(c, DIAG_LIMIT, "a transform of %lld elements, of %lld numbers each",
                  (long long)f.length, (long long)extents[last]);
        return NODE_NONE;
    }
    f.n_in = extents[last - 1] < f.length ? extents[last - 1] : f.length;
    f.n_out = f.is_onesided && !f.is_inverse ? f.length / 2 + 1 : f.length;
    if (f.n_in * f.n_out > MAX_TABLE) {
        onnx_fail(c, DIAG_LIMIT, "a transform of %lld elements", (long long)f.length);
        return NODE_NONE;
    }
    x = part_of(c, x, last - 1, number(c, 0), number(c, f.n_in));
    NodeId parts[2] = {at_index(c, x, last, 0),
                       extents[last] > 1 ? at_index(c, x, last, 1) : NODE_NONE};
    NodeId cosines = wave_table(c, &f, cos, dtype_of(c, x));
    NodeId sines = wave_table(c, &f, sin, dtype_of(c, x));
    NodeId re = matmul(c, parts[0], cosines), im = matmul(c, parts[0], sines);
    if (!f.is_inverse) im = op1(c, OP_NEG, im);
    if (parts[1] != NODE_NONE) {
        NodeId turned = matmul(c, parts[1], sines);
        re = op2(c, f.is_inverse ? OP_SUB : OP_ADD, re, turned);
        im = op2(c, OP_ADD, im, matmul(c, parts[1], cosines));
    }
    NodeId both[2] = {re, im};
    return stacked(c, is_real_out ? 1 : 2, both, last);
}

bool onnx_dft(Call *c) {
    NodeId x = input(c, 0);
    int64_t given = attr_int(c, "axis", 1), extents[MAX_RANK];
    uint32_t axis;
    Fourier f = {.is_inverse = attr_int(c, "inverse", 0) != 0,
                 .is_onesided = attr_int(c, "onesided", 0) != 0};
    if ((c->opset >= 20 && !int_argument(c, 2, -2, &given)) ||
        !const_dims_but(c, x, batch_axes(c, x, 1), extents))
        return false;
    uint32_t rank = shape_of(c, x)->rank;
    if (rank < 2 || !axis_of(c, given, rank, &axis) || axis == rank - 1)
        return onnx_fail(c, DIAG_BAD_AXIS, "it needs an axis before the last");
    if (extents[axis] < 0)
        return onnx_fail(c, DIAG_NO_LOWERING, "the extent of its axis must be a constant");
    int64_t usual = f.is_inverse && f.is_onesided ? 2 * (extents[axis] - 1) : extents[axis];
    if (!int_argument(c, 1, usual, &f.length)) return false;
    NodeId y = transformed(c, move_axis(c, x, axis, rank - 2), f);
    return output(c, 0, move_axis(c, y, rank - 2, axis));
}

/* x: [b, t, 1 or 2] -> frames of the length, each `step` after the one before, times a window */
bool onnx_stft(Call *c) {
    NodeId x = input(c, 0), window = input(c, 2);
    int64_t extents[MAX_RANK], step, length;
    enum { MAX_FRAMES = 1 << 24 }; /* times their length */
    Shape shape;
    Fourier f = {.is_onesided = attr_int(c, "onesided", 1) != 0};
    if (!int_argument(c, 1, 0, &step) || !const_dims_but(c, x, 1, extents)) return false;
    if (shape_of(c, x)->rank != 3) return onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs 3 axes");
    length = extents[1];
    if (has_input(c, 2) && value_shape(c->im, input_value(c, 2), &shape) && shape.rank == 1)
        dim_is_const(c->im->b->dims, shape.dims[0], &length);
    if (!int_argument(c, 3, length, &f.length)) return false;
    if (step < 1 || step > INT32_MAX || f.length < 1 || f.length > extents[1] ||
        1 + (extents[1] - f.length) / step > MAX_FRAMES / f.length)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "its frames do not fit the signal");
    int64_t dims[2] = {1 + (extents[1] - f.length) / step, f.length};
    double *places = arena_array(c->im->arena, double, (size_t)(dims[0] * dims[1]) + 1);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++)
        places[i] = (double)(i / f.length * step + i % f.length);
    x = build_gather(c->im->b, x, table_node(c, DT_I32, 2, dims, places), 1);
    if (window != NODE_NONE) x = op2(c, OP_MUL, x, with_axis(c, window, 1));
    return output(c, 0, transformed(c, x, f));
}

/* a - b cos(2 pi i / n) + d cos(4 pi i / n) */
static bool cosine_window(Call *c, double a, double b, double d) {
    int64_t n;
    Dtype dtype;
    enum { MAX_WINDOW = 1 << 20 };
    if (!int_argument(c, 0, 0, &n)) return false;
    if (n < 0 || n > MAX_WINDOW || !elem_dtype(attr_int(c, "output_datatype", ELEM_FLOAT), &dtype))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it has no such window");
    double period = (double)(attr_int(c, "periodic", 1) ? n : n - 1);
    double *values = arena_array(c->im->arena, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) {
        double turn = 2 * pi * (double)i / period;
        values[i] = a - b * cos(turn) + d * cos(2 * turn);
    }
    return output(c, 0, table_node(c, dtype, 1, &n, values));
}

bool onnx_hann_window(Call *c) {
    return cosine_window(c, 0.5, 0.5, 0);
}

bool onnx_hamming_window(Call *c) {
    return cosine_window(c, 25.0 / 46, 21.0 / 46, 0);
}

bool onnx_blackman_window(Call *c) {
    return cosine_window(c, 0.42, 0.5, 0.08);
}

/* Triangles of frequencies, evenly spaced on the mel scale: [length / 2 + 1, bins] */
bool onnx_mel_weights(Call *c) {
    int64_t bins, length, rate;
    double edges[2], *values;
    Dtype dtype;
    enum { MAX_BINS = 4096 };
    if (!int_argument(c, 0, 0, &bins) || !int_argument(c, 1, 0, &length) ||
        !int_argument(c, 2, 0, &rate) || !float_argument(c, 3, 0, &edges[0]) ||
        !float_argument(c, 4, 0, &edges[1]))
        return false;
    if (bins < 1 || bins > MAX_BINS || length < 1 || length > 1 << 16 || rate < 1 ||
        !elem_dtype(attr_int(c, "output_datatype", ELEM_FLOAT), &dtype))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it has no such matrix");
    int64_t dims[2] = {length / 2 + 1, bins}, at[MAX_BINS + 2];
    for (int i = 0; i < 2; i++) edges[i] = 2595 * log10(1 + edges[i] / 700);
    values = arena_array(c->im->arena, double, (size_t)(dims[0] * dims[1]) + 1);
    for (int64_t i = 0; i < bins + 2; i++) {
        double mel = edges[0] + (double)i * (edges[1] - edges[0]) / (double)(bins + 2);
        double hertz = 700 * (pow(10, mel / 2595) - 1);
        if (!(hertz >= 0 && hertz <= (double)rate))
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "its frequencies lie outside the spectrum");
        at[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
        if (at[i] < 0 || at[i] >= dims[0])
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "its frequencies lie outside the spectrum");
    }
    for (int64_t i = 0; i < bins; i++) {
        int64_t low = at[i], centre = at[i + 1], high = at[i + 2];
        if (low == centre) values[centre * bins + i] = 1;
        for (int64_t j = low; low != centre && j <= centre; j++)
            values[j * bins + i] = (double)(j - low) / (double)(centre - low);
        for (int64_t j = centre; j < high; j++)
            values[j * bins + i] = (double)(high - j) / (double)(high - centre);
    }
    return output(c, 0, table_node(c, dtype, 2, dims, values));
}
