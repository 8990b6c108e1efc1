/* Support vector machines of the domain ai.onnx.ml: sums over kernels of rows x: f32[n, features]
 * with support vectors [vectors, features]. A classifier has a score for each pair of classes, and
 * each score is a vote for one of the pair. */
#include "onnx/call/import_state.h"

enum { MAX_CLASSES = 256, MAX_FACTORS = 1 << 24 };

/* x . y for each row and vector: [n, vectors] */
static NodeId products(Call *c, NodeId x, NodeId vectors) {
    return matmul(c, x, move_axis(c, vectors, 1, 0));
}

/* gamma * x . y + coef0 */
static NodeId affine(Call *c, NodeId x, NodeId vectors, double gamma, double coef0) {
    NodeId scaled = op2n(c, OP_MUL, products(c, x, vectors), gamma);
    return scaled == NODE_NONE ? scaled : op2n(c, OP_ADD, scaled, coef0);
}

/* exp(-gamma * |x - y|^2) */
static NodeId radial(Call *c, NodeId x, NodeId vectors, double gamma) {
    NodeId apart = op2(c, OP_SUB, with_axis(c, x, 1), with_axis(c, vectors, 0));
    if (apart == NODE_NONE) return apart;
    NodeId square = reduce(c, OP_SUM, op2(c, OP_MUL, apart, apart), 1u << 2, false);
    return square == NODE_NONE ? square : op1(c, OP_EXP, op2n(c, OP_MUL, square, -gamma));
}

/* The kernel of each row and support vector: [n, vectors] */
static NodeId kernels(Call *c, int64_t n_vectors) {
    int64_t n_features;
    NodeId x = cast_to(c, onnx_ml_rows(c, &n_features), DT_F32);
    if (x == NODE_NONE) return x;
    NodeId vectors =
        onnx_ml_table(c, "support_vectors", DT_F32, 2, (int64_t[]){n_vectors, n_features});
    if (vectors == NODE_NONE) return vectors;
    const OnnxAttr *params = typed_attr(c, "kernel_params", ATTR_FLOATS);
    double gamma = 0, coef0 = 0, degree = 0;
    if (params && params->floats.n == 3)
        gamma = params->floats.data[0], coef0 = params->floats.data[1],
        degree = params->floats.data[2];
    Str kind = attr_string(c, "kernel_type", "LINEAR");
    if (strcmp(kind, "LINEAR") == 0) return products(c, x, vectors);
    if (strcmp(kind, "RBF") == 0) return radial(c, x, vectors, gamma);
    if (strcmp(kind, "POLY") == 0)
        return op2n(c, OP_POW, affine(c, x, vectors, gamma, coef0), degree);
    if (strcmp(kind, "SIGMOID") == 0) return op1(c, OP_TANH, affine(c, x, vectors, gamma, coef0));
    onnx_fail(c, DIAG_BAD_ARGUMENT, "there is no kernel_type `%s`", kind);
    return NODE_NONE;
}

bool onnx_ml_svm_regressor(Call *c) {
    int64_t n_vectors = attr_int(c, "n_supports", 0), one = 1;
    if (n_vectors < 1 || n_vectors > onnx_ml_n_floats(c, "support_vectors"))
        return onnx_fail(c, DIAG_NO_LOWERING, "it needs support vectors");
    NodeId kernel = kernels(c, n_vectors);
    if (kernel == NODE_NONE) return false;
    NodeId factors = onnx_ml_table(c, "coefficients", DT_F32, 2, (int64_t[]){n_vectors, 1});
    NodeId offset = onnx_ml_table(c, "rho", DT_F32, 1, &one);
    if (factors == NODE_NONE || offset == NODE_NONE) return false;
    NodeId y = op2(c, OP_ADD, matmul(c, kernel, factors), offset);
    if (y == NODE_NONE || !attr_int(c, "one_class", 0))
        return output(c, 0, onnx_ml_transformed(c, y));
    NodeId is_inside = op2n(c, OP_GREATER, y, 0);
    return output(c, 0, where(c, is_inside, constant(c, 1, y), constant(c, -1, y)));
}

/* Classes, their support vectors side by side, and the pairs of classes in order. */
typedef struct Machine {
    const VecInt *labels, *n_of_class;
    int64_t n_vectors, n_pairs;
} Machine;

static bool read_machine(Call *c, Machine *m) {
    if (!onnx_ml_labels(c, "classlabels_ints", &m->labels)) return false;
    int64_t n = m->labels->n;
    if (n > MAX_CLASSES) return onnx_fail(c, DIAG_LIMIT, "it has more than 256 classes");
    if (!attr_ints(c, "vectors_per_class", &m->n_of_class) || m->n_of_class->n != n)
        return onnx_fail(c, DIAG_NO_LOWERING, "it needs support vectors of each class");
    for (uint32_t i = 0; i < n; i++) {
        int64_t own = m->n_of_class->data[i];
        if (own < 0 || own > INT32_MAX)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "a class has %lld vectors", (long long)own);
        m->n_vectors += own;
    }
    m->n_pairs = n * (n - 1) / 2;
    if (m->n_vectors > MAX_FACTORS / m->n_pairs)
        return onnx_fail(c, DIAG_LIMIT, "it has too many vectors and classes");
    if (m->n_vectors > 0 && onnx_ml_n_floats(c, "coefficients") == (n - 1) * m->n_vectors)
        return true;
    return onnx_fail(c, DIAG_WRONG_COUNT, "it needs %lld coefficients",
                     (long long)((n - 1) * m->n_vectors));
}

/* Factors of kernels for scores: [vectors, pairs]. A pair has the vectors of its two classes. */
static NodeId pair_factors(Call *c, const Machine *m) {
    const double *from = find_attr(c, "coefficients")->floats.data;
    int64_t n = m->n_vectors, n_pairs = m->n_pairs, pair = 0, begin_i = 0;
    double *factors = arena_array(c->im->arena, double, (size_t)(n * n_pairs));
    for (uint32_t i = 0; i < m->labels->n; i++) {
        int64_t end_i = begin_i + m->n_of_class->data[i], begin_j = end_i;
        for (uint32_t j = i + 1; j < m->labels->n; j++, pair++) {
            int64_t end_j = begin_j + m->n_of_class->data[j];
            for (int64_t v = begin_i; v < end_i; v++)
                factors[v * n_pairs + pair] = from[(j - 1) * n + v];
            for (int64_t v = begin_j; v < end_j; v++) factors[v * n_pairs + pair] = from[i * n + v];
            begin_j = end_j;
        }
        begin_i = end_i;
    }
    return table_node(c, DT_F32, 2, (int64_t[]){n, n_pairs}, factors);
}

/* The votes of scores [n, pairs] for classes, [n, classes]: a score above 0 is one for the first of
 * its pair, any other for the second. */
static NodeId votes(Call *c, const Machine *m, NodeId scores) {
    int64_t n = m->labels->n, pair = 0;
    double *signs = arena_array(c->im->arena, double, (size_t)(m->n_pairs * n));
    double *as_second = arena_array(c->im->arena, double, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        as_second[i] = (double)i;
        for (int64_t j = i + 1; j < n; j++, pair++) {
            signs[pair * n + i] = 1;
            signs[pair * n + j] = -1;
        }
    }
    NodeId is_first = cast_to(c, op2n(c, OP_GREATER, scores, 0), DT_F32);
    NodeId more = matmul(c, is_first, table_node(c, DT_F32, 2, (int64_t[]){m->n_pairs, n}, signs));
    return more == NODE_NONE ? more : op2(c, OP_ADD, more, table_node(c, DT_F32, 1, &n, as_second));
}

bool onnx_ml_svm_classifier(Call *c) {
    Machine m = {0};
    if (!read_machine(c, &m)) return false;
    if (onnx_ml_n_floats(c, "prob_a") > 0)
        return onnx_fail(c, DIAG_NO_LOWERING, "its probabilities are found by iteration");
    NodeId kernel = kernels(c, m.n_vectors);
    if (kernel == NODE_NONE) return false;
    NodeId offsets = onnx_ml_table(c, "rho", DT_F32, 1, &m.n_pairs);
    if (offsets == NODE_NONE) return false;
    NodeId scores = op2(c, OP_ADD, matmul(c, kernel, pair_factors(c, &m)), offsets);
    if (scores == NODE_NONE) return false;
    NodeId shown = m.n_pairs == 1 ? concat(c, op1(c, OP_NEG, scores), scores, 1) : scores;
    return onnx_ml_output_best(c, votes(c, &m, scores), m.labels) &&
           output(c, 1, onnx_ml_transformed(c, shown));
}
