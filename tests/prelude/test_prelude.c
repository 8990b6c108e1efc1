/* Functions of the prelude, evaluated by the interpreter: beside the same written with ops and
 * numbers, and beside the functions of C. Functions of one float are swept in tests/ulp. */
#include "front/sema.h"
#include "interp/interp.h"
#include "random/random_data.h"

#include <criterion/criterion.h>
#include <math.h>

/* Evaluates the graph `source`, whose inputs are filled at random; a `fill` overwrites them. Its
 * only dim is `extent`. */
typedef struct Evaluated {
    Arena *arena;
    const Graph *graph;
    Tensor inputs[8], *values;
} Evaluated;

static const char *messages(Arena *arena, const Diags *diags) {
    Text text = {.arena = arena};
    diag_print(diags, &text);
    return text_str(&text);
}

static Evaluated evaluate_at(const char *source, int64_t extent, void (*fill)(Tensor *inputs)) {
    Evaluated e = {.arena = arena_new(NULL)};
    Diags diags = {.arena = e.arena};
    Module *module = front_parse(e.arena, strtab_new(e.arena), &diags,
                                 source_new(e.arena, "t.g", source, strlen(source)));
    cr_assert(module, "%s", messages(e.arena, &diags));
    e.graph = module->graphs.data[0];
    Rng rng = rng_new(1);
    const char *error = NULL;
    for (uint32_t i = 0; i < e.graph->inputs.n; i++) {
        NodeId node = e.graph->inputs.data[i].node;
        Tensor *t = &e.inputs[i];
        cr_assert(interp_shape(e.graph, node, &extent, t, e.arena, &error), "%s", error);
        cr_assert(tensor_new(e.arena, t->dtype, t->rank, t->dims, t));
        random_fill(&rng, FILL_UNIFORM, t);
    }
    if (fill) fill(e.inputs);
    e.values = arena_array(e.arena, Tensor, e.graph->nodes.n);
    cr_assert(interp_graph(e.graph, &extent, e.inputs, NULL, e.values, e.arena, &error), "%s",
              error);
    return e;
}

static Evaluated evaluate(const char *source, void (*fill)(Tensor *inputs)) {
    return evaluate_at(source, 0, fill);
}

static const Tensor *output_of(const Evaluated *e, uint32_t i) {
    return &e->values[e->graph->outputs.data[i].node];
}

/* The results agree within a few roundings of f32. */
static void expect_near(double got, double want, const char *what, int64_t i) {
    bool is_same = got == want || (isnan(got) && isnan(want));
    cr_expect(is_same || fabs(got - want) <= 2e-6 * fmax(1, fabs(want)),
              "%s, element %lld: %g, want %g", what, (long long)i, got, want);
}

typedef struct Case {
    const char *inputs, *type, *function, *spelled;
} Case;

static const Case cases[] = {
    {"x: f32[3, 4]", "f32[3, 4]", "elu(x, alpha=0.5)", "where(x > 0, x, 0.5 * (exp(x) - 1))"},
    {"x: f32[3, 4]", "f32[3, 4]", "celu(x, 2.0)", "where(x > 0, x, 2 * (exp(x / 2) - 1))"},
    {"x: f32[3, 4]", "f32[3, 4]", "hardtanh(x, -0.5, 2)", "minimum(maximum(x, -0.5), 2)"},
    {"x: f32[3, 4]", "f32[3, 4]", "clamp(x, 0.5)", "maximum(x, 0.5)"},
    {"x: f32[3, 4]", "f32[3, 4]", "clamp(x, max=0.5)", "minimum(x, 0.5)"},
    {"x: f32[3, 4]", "f32[3, 4]", "clamp(x, none, 0.5)", "minimum(x, 0.5)"},
    {"x: f32[3, 4]", "f32[3, 4]", "clamp(x, min=-0.5, max=0.5)", "clamp(x, -0.5, 0.5)"},
    {"x: f32[3, 4]", "f32[3, 4]", "leaky_relu(x, negative_slope=0.5)", "leaky_relu(x, 0.5)"},
    {"x: f32[3, 4]", "f32[3, 4]", "softplus(x, beta=2.0, threshold=1.0)",
     "where(2 * x > 1, x, softplus(2 * x) / 2)"},
    {"x: f32[3, 4]", "f32[3, 4]", "layernorm(x)", "layernorm(x, ones([4]), zeros([4]))"},
    {"x: f32[3, 4]", "f32[3, 4]", "layernorm(x, eps=0.1)",
     "layernorm(x, ones([4]), zeros([4]), eps=0.1)"},
    {"x: f32[3, 4], g: f32[4]", "f32[3, 4]", "layernorm(x, g)", "layernorm(x, g, zeros([4]))"},
    {"x: f32[3, 4]", "f32[3, 4]", "rmsnorm(x)", "rmsnorm(x, ones([4]))"},
    {"x: f32[2, 4, 3]", "f32[2, 4, 3]", "groupnorm(x, 2)",
     "groupnorm(x, 2, ones([4]), zeros([4]))"},
    {"x: f32[2, 4, 3], b: f32[4]", "f32[2, 4, 3]", "instancenorm(x, beta=b)",
     "instancenorm(x, ones([4]), b)"},
    {"x: f32[2, 4, 3], m: f32[4]", "f32[2, 4, 3]", "batchnorm(x, m, m * m)",
     "batchnorm(x, m, m * m, ones([4]), zeros([4]))"},
    {"x: f32[3, 4]", "f32[3, 4]", "dropout(x, key=tensor([7, 9], u32))",
     "dropout(x, 0.5, tensor([7, 9], u32))"},
    {"x: f32[3, 4]", "f32[3, 2]", "glu(x)", "x[:, :2] * sigmoid(x[:, 2:])"},
    {"x: f32[4, 3]", "f32[2, 3]", "glu(x, axis=0)", "x[:2] * sigmoid(x[2:])"},
    {"x: f32[3, 4]", "f32[3, 4]", "where(isfinite(x / 0), 1.0, where(isnan(x), 2.0, 3.0))",
     "x * 0 + 3"},
    {"x: f32[3, 4]", "bool[3, 4]", "isinf(1 / (x - x))", "x == x"},
    {"x: f32[3, 1, 4]", "f32[3, 4]", "squeeze(x, axis=1)", "reshape(x, [3, 4])"},
    {"x: f32[3, 4, 1]", "f32[3, 4]", "squeeze(x, -1)", "reshape(x, [3, 4])"},
    {"x: f32[1, 3, 1, 4]", "f32[3, 4]", "squeeze(x)", "reshape(x, [3, 4])"},
    {"x: f32[1, 1]", "f32[]", "squeeze(x)", "x[0, 0]"},
    {"x: f32[3, 4]", "f32[3, 1, 4]", "unsqueeze(x, 1)", "reshape(x, [3, 1, 4])"},
    {"x: f32[3, 4]", "f32[3, 4, 1]", "unsqueeze(x, -1)", "reshape(x, [3, 4, 1])"},
    {"x: f32[2, 3, 4]", "f32[24]", "flatten(x)", "reshape(x, [24])"},
    {"x: f32[2, 3, 4]", "f32[2, 12]", "flatten(x, start_dim=1)", "reshape(x, [2, 12])"},
    {"x: f32[2, 3, 4]", "f32[6, 4]", "flatten(x, 0, -2)", "reshape(x, [6, 4])"},
    {"x: f32[3, 4]", "f32[3, 2, 4]", "stack([x, x + 1.0], axis=1)",
     "concat([reshape(x, [3, 1, 4]), reshape(x + 1.0, [3, 1, 4])], axis=1)"},
    {"x: f32[3, 4]", "f32[3, 4, 1]", "stack([x], axis=-1)", "reshape(x, [3, 4, 1])"},
    {"x: f32[2, 3]", "f32[2, 3]", "flip(x, axis=1)",
     "concat([x[:, 2:], x[:, 1:2], x[:, :1]], axis=1)"},
    {"x: f32[2, 3]", "f32[2, 3]", "flip(x, -2)", "concat([x[1:], x[:1]], axis=0)"},
    {"x: f32[2, 3]", "f32[4, 3]", "repeat_interleave(x, 2, axis=0)",
     "concat([x[:1], x[:1], x[1:], x[1:]], axis=0)"},
    {"x: f32[3, 2]", "f32[4, 2]", "repeat_interleave(x, [1, 0, 3], axis=0)",
     "concat([x[:1], x[2:], x[2:], x[2:]], axis=0)"},
    {"i: i32[4]", "i32[4]", "i & 0xff | 0xABc << 0x8", "i & 255 | 2748 << 8"},
    {"x: f32[2, 4, 3]", "f32[2, 4, 3]", "instancenorm(x)", "groupnorm(x, 4)"},
    {"x: f32[1, 1, 6, 10]", "f32[1, 1, 6, 10]", "interpolate(x, [1.0, 1.05])", "x"},
    {"x: f32[1, 1, 10, 2]", "f32[1, 1, 20, 4]", "interpolate(x, 2.07)", "interpolate(x, 2)"},
    {"x: f32[1, 1, 10]", "f32[1, 1]", "interpolate(x, 2.07)[:, :, 19]", "x[:, :, 9]"},
    {"x: f32[1, 1, 10]", "f32[1, 1]", "interpolate(x, 2.07)[:, :, 2]", "x[:, :, 0]"},
    {"x: f32[1, 1, 10]", "f32[1, 1]", "interpolate(x, 2.15)[:, :, 15]", "x[:, :, 6]"},
    {"x: f32[2, 3], t: f32[2, 3], v: f32[2]", "f32[]", "gaussian_nll_loss(x, t, v)",
     "gaussian_nll_loss(x, t, expand(unsqueeze(v, 1), [2, 3]))"},
    {"x: f32[2, 3], t: f32[2, 3], v: f32[3]", "f32[]", "gaussian_nll_loss(x, t, v)",
     "gaussian_nll_loss(x, t, expand(v, [2, 3]))"},
    {"x: f32[3, 4]", "i32[9]", "bincount(cast(x, i8), 9)", "bincount(cast(x, i32), 9)"},
    {"x: f32[3, 4]", "i32[300]", "bincount(cast(x, i16), 300)", "bincount(cast(x, i64), 300)"},
    {"x: f32[2, 5, 4], w: f32[3, 6, 4], b: f32[6]", "f32[2, 7, 6]", "conv_transpose1d_nwc(x, w, b)",
     "transpose(conv_transpose1d(transpose(x, perm=[0, 2, 1]), transpose(w, perm=[2, 1, 0]), b), "
     "perm=[0, 2, 1])"},
    {"x: f32[5, 5, 4], w: f32[3, 3, 3, 4]", "f32[11, 11, 6]",
     "conv_transpose2d_nhwc(x, w, stride=2, groups=2)",
     "transpose(conv_transpose2d(transpose(x, perm=[2, 0, 1]), transpose(w, perm=[3, 2, 0, 1]), "
     "stride=2, groups=2), perm=[1, 2, 0])"},
    {"x: f32[2, 4, 4, 2, 3]", "f32[2, 2, 2, 1, 3]", "max_pool3d_ndhwc(x, 2)",
     "transpose(max_pool3d(transpose(x, perm=[0, 4, 1, 2, 3]), 2), perm=[0, 2, 3, 4, 1])"},
    {"x: f32[2, 4, 3]", "f32[2, 2, 3]", "adaptive_avg_pool1d_nwc(x, 2)", "avg_pool1d_nwc(x, 2)"},
    {"x: f32[3]", "f32[6]", "repeat_interleave(x, 2, 0)",
     "concat([x[:1], x[:1], x[1:2], x[1:2], x[2:], x[2:]], axis=0)"},
    {"x: f32[2, 2]", "f32[2, 2]", "tril(x)",
     "concat([pad(x[:1, :1], low=[0, 0], high=[0, 1]), x[1:]], axis=0)"},
    {"x: f32[2, 2]", "f32[2, 2]", "triu(x)",
     "concat([x[:1], pad(x[1:, 1:], low=[0, 1], high=[0, 0])], axis=0)"},
    {"x: f32[2, 2]", "f32[2, 2]", "triu(x, diagonal=1)", "pad(x[:1, 1:], low=[0, 1], high=[1, 0])"},
    {"x: f32[2, 2]", "f32[2, 2]", "tril(x, -1)", "pad(x[1:, :1], low=[1, 0], high=[0, 1])"},
    {"x: f32[2]", "f32[2, 2]", "diag(x)",
     "pad(reshape(x, [2, 1]), low=[0, 0], high=[0, 1]) * pad(const(1.0, f32) + zeros([1, 1]), "
     "low=[0, 0], high=[1, 1]) + pad(reshape(x[1:], [1, 1]), low=[1, 1], high=[0, 0])"},
    {"q: f32[2, 3, 4], k: f32[2, 5, 4], v: f32[2, 5, 3]", "f32[2, 3, 3]", "attention(q, k, v)",
     "softmax(q / 2 @ transpose(k, perm=[0, 2, 1])) @ v"},
    {"q: f32[3, 4], k: f32[5, 4], v: f32[5, 3], b: f32[3, 5]", "f32[3, 3]",
     "attention(q, k, v, b > 0.3 || b < 0, is_causal=true, scale=0.7)",
     "softmax(where((b > 0.3 || b < 0) && b == tril(b), q * 0.7 @ transpose(k), -inf)) @ v"},
    {"q: f32[4, 3, 4], k: f32[2, 5, 4], v: f32[2, 5, 3], b: f32[4, 3, 5]", "f32[4, 3, 3]",
     "attention(q, k, v, mask=b, enable_gqa=true)",
     "softmax(q @ transpose(repeat_interleave(k, 2, 0), perm=[0, 2, 1]) / 2 + b) @ "
     "repeat_interleave(v, 2, 0)"},
    {"q: f32[1, 4, 3, 4], k: f32[1, 1, 5, 4], v: f32[1, 1, 5, 3], b: f32[3, 5]", "f32[1, 4, 3, 3]",
     "attention(q, k, v, b, enable_gqa=true)",
     "softmax(q @ transpose(k, perm=[0, 1, 3, 2]) / 2 + b) @ v"},
    {"x: f32[3]", "f32[3]", "x + full([3], 2.5) + ones([3]) + zeros([3])", "x + 3.5"},
    {"x: f32[3]", "f32[3]", "x + arange(3, f32)", "x + cast(iota([3]), f32)"},
    {"x: f32[2, 3]", "f32[2, 3]", "eye(2) @ x", "x"},
    {"x: f32[2, 3]", "f32[2, 2]", "x @ eye(3, 2)", "x[:, :2]"},
    {"i: i32[4]", "i32[4]", "argmax(one_hot(i, 6), axis=1) * cast(i >= 0 && i < 6, i32)",
     "i * cast(i >= 0 && i < 6, i32)"},
    {"i: i32[4]", "i32[4]", "sum(one_hot(i, 6), axis=1)", "cast(i >= 0 && i < 6, i32)"},
    {"x: f32[2, 3], i: i32[5]", "f32[2, 5]", "index_select(x, 1, i)", "gather(x, i, axis=1)"},
    {"x: f32[2, 3]", "f32[2, 3]", "take_along_dim(x, cast(2 - iota([2, 3], axis=1), i64))",
     "x[:, ::-1]"},
    {"x: f32[2, 3], i: i32[5]", "f32[2, 5]", "take_along_dim(x, expand(i, [2, 5]), axis=1)",
     "gather(x, i, axis=1)"},
    {"x: f32[3, 2, 4], i: i32[6]", "f32[6, 2, 4]",
     "take_along_dim(x, expand(reshape(i, [6, 1, 1]), [6, 2, 4]), 0)", "gather(x, i)"},
    {"x: f32[3, 4]", "f32[1, 4]", "take_along_dim(x, argmax(x, axis=0, keep=true), axis=0)",
     "max(x, axis=0, keep=true)"},
    {"x: f32[3, 4]", "bool[3]", "any(x > 3, axis=1)", "max(x, axis=1) > 3"},
    {"x: f32[3, 4]", "bool[]", "all(x)", "min(abs(x)) > 0"},
    {"x: f32[3, 4]", "i32[3, 1]", "count_nonzero(maximum(x, 0), axis=1, keep=true)",
     "cast(sum(sign(maximum(x, 0)), axis=1, keep=true), i32)"},
    {"x: f32[3, 4]", "f32[4]", "norm(x, axis=0)", "sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])"},
    {"x: f32[2, 3], w: f32[4, 3], b: f32[4]", "f32[2, 4]", "linear(x, w, b)",
     "addmm(b, x, transpose(w))"},
    {"a: f32[2], b: f32[3]", "f32[2, 3]", "outer(a, b)",
     "expand(unsqueeze(a, 1), [2, 3]) * expand(b, [2, 3])"},
    {"x: f32[2, 3], a: f32[2, 4], b: f32[4, 3]", "f32[2, 3]", "addmm(x, a, b, beta=0.5, alpha=2.0)",
     "x * 0.5 + a @ b + a @ b"},
    {"a: f32[2, 3, 4], b: f32[2, 4, 5]", "f32[2, 3, 5]", "bmm(a, b)", "a @ b"},
    {"x: f32[3, 4]", "f32[4]", "std(x, axis=0, correction=1)",
     "sqrt(sum((x - mean(x, axis=0)) * (x - mean(x, axis=0)), axis=0) / 2)"},
    {"x: f32[3, 4]", "f32[]", "std(x)", "sqrt(mean((x - mean(x)) * (x - mean(x))))"},
    {"x: f32[3, 4]", "f32[3, 1]", "var(x, axis=1, keep=true, correction=1)",
     "4.0 / 3 * var(x, axis=1, keep=true)"},
    {"x: f32[3, 4]", "f32[3]", "norm(x, axis=1, p=1)", "sum(abs(x), axis=1)"},
    {"x: f32[3, 4]", "f32[3]", "norm(x, axis=1, p=inf)", "max(abs(x), axis=1)"},
    {"x: f32[3, 4]", "f32[3]", "norm(x, axis=1, p=3)", "pow(sum(abs(x * x * x), axis=1), 1.0 / 3)"},
    {"x: f32[2, 3]", "f32[2, 4, 3]", "repeat(x, [2, 2, 1])",
     "stack([concat([x, x], axis=0), concat([x, x], axis=0)])"},
    {"x: f32[2, 3]", "f32[2, 6]", "tile(x, [2])", "concat([x, x], axis=1)"},
    {"x: f32[3, 3]", "f32[3]", "diag(x)", "stack([x[0, 0], x[1, 1], x[2, 2]])"},
    {"x: f32[3, 3]", "f32[]", "trace(x)", "x[0, 0] + x[1, 1] + x[2, 2]"},
    {"x: f32[1, 2, 7]", "f32[1, 2, 3]", "adaptive_avg_pool1d(x, 3)",
     "stack([mean(x[:, :, :3], axis=2), mean(x[:, :, 2:5], axis=2), mean(x[:, :, 4:], axis=2)], "
     "axis=2)"},
    {"x: f32[1, 2, 4, 5]", "f32[1, 2, 2]", "adaptive_max_pool2d(x, 2)[:, :, 1]",
     "stack([max(x[:, :, 2:, :3], axis=[2, 3]), max(x[:, :, 2:, 2:], axis=[2, 3])], axis=2)"},
    {"x: f32[2, 2, 4, 5]", "i32[2, 2, 2, 2]", "adaptive_max_pool2d(x, 2, return_indices=true)[1]",
     "max_pool2d(x, [2, 3], stride=2, return_indices=true)[1]"},
    {"x: f32[1, 2, 4, 6, 2]", "f32[1, 2, 2, 3, 1]", "adaptive_avg_pool3d(x, [2, 3, 1])",
     "avg_pool3d(x, 2)"},
    {"x: f32[1, 1, 3]", "f32[1, 1, 6]", "interpolate(x, 2, mode=\"linear\")",
     "stack([x[:, :, 0], x[:, :, 0] * 0.75 + x[:, :, 1] * 0.25, x[:, :, 0] * 0.25 + x[:, :, 1] * "
     "0.75, x[:, :, 1] * 0.75 + x[:, :, 2] * 0.25, x[:, :, 1] * 0.25 + x[:, :, 2] * 0.75, x[:, :, "
     "2]], axis=2)"},
    {"x: f32[1, 1, 3]", "f32[1, 1, 5]",
     "interpolate(x, size=[5], mode=\"linear\", align_corners=true)",
     "stack([x[:, :, 0], (x[:, :, 0] + x[:, :, 1]) / 2, x[:, :, 1], (x[:, :, 1] + x[:, :, 2]) / 2, "
     "x[:, :, 2]], axis=2)"},
    {"x: f32[1, 1, 1, 4]", "f32[1, 1, 2]", "interpolate(x, 2, mode=\"bicubic\")[:, :, :, 3]",
     "expand(x[:, :, :, 0] * -0.10546875 + x[:, :, :, 1] * 0.87890625 + x[:, :, :, 2] * 0.26171875 "
     "- "
     "x[:, :, :, 3] * 0.03515625, [1, 1, 2])"},
    {"x: f32[2, 2, 3, 4]", "f32[2, 2, 6, 2]", "interpolate(x, size=[6, 2])",
     "repeat_interleave(x[:, :, :, ::2], 2, axis=2)"},
    {"x: f32[2, 2, 3, 4]", "f32[2, 2, 6, 12]", "interpolate(x, [2, 3], mode=\"bilinear\")",
     "interpolate(x, size=[6, 12], mode=\"bilinear\")"},
    {"x: f32[1, 2, 2, 3]", "f32[1, 2, 2, 3]",
     "grid_sample(x, stack([expand(cast(arange(3), f32) - 1, [1, 2, 3]), expand(unsqueeze(2.0 * "
     "cast(arange(2), f32) - 1, 1), [1, 2, 3])], axis=-1), align_corners=true)",
     "x"},
    {"x: f32[1, 2, 2, 2]", "f32[1, 2, 1, 1]", "grid_sample(x, zeros([1, 1, 1, 2]))",
     "mean(x, axis=[2, 3], keep=true)"},
    {"x: f32[1, 2, 2, 2]", "f32[1, 2, 1, 1]", "grid_sample(x, -1.0 * ones([1, 1, 1, 2]))",
     "x[:, :, :1, :1] / 4"},
    {"x: f32[1, 2, 2, 2]", "f32[1, 2, 1, 1]",
     "grid_sample(x, -1.5 * ones([1, 1, 1, 2]), padding_mode=\"border\")", "x[:, :, :1, :1]"},
    {"x: f32[1, 2, 2, 2]", "f32[1, 2, 1, 1]",
     "grid_sample(x, stack([0.6 * ones([1, 1, 1]), -0.4 * ones([1, 1, 1])], axis=-1), "
     "mode=\"nearest\")",
     "x[:, :, :1, 1:]"},
    {"x: f32[2, 3, 4], m: f32[3], v: f32[3], g: f32[3], b: f32[3]", "f32[2, 4]",
     "batchnorm(x, m, v * v, g, b)[:, 1]",
     "(x[:, 1] - m[1]) / sqrt(v[1] * v[1] + 1e-5) * g[1] + b[1]"},
    {"x: f32[2, 4, 5], g: f32[4], b: f32[4]", "f32[2, 5]", "groupnorm(x, 2, g, b)[:, 3]",
     "(x[:, 3] - unsqueeze(mean(x[:, 2:], axis=[1, 2]), 1)) / unsqueeze(sqrt(var(x[:, 2:], "
     "axis=[1, 2]) + 1e-5), 1) * g[3] + b[3]"},
    {"x: f32[2, 4, 5], g: f32[4], b: f32[4]", "f32[2, 5]", "instancenorm(x, g, b)[:, 3]",
     "(x[:, 3] - mean(x[:, 3], axis=1, keep=true)) / sqrt(var(x[:, 3], axis=1, keep=true) + 1e-5) "
     "* g[3] + b[3]"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[]", "mse_loss(x, t)", "sum(pow(abs(x - t), 2.0)) / 6"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[]", "mse_loss(x, t, reduction=\"sum\")",
     "sum(pow(abs(x - t), 2.0))"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[2, 3]", "mse_loss(x, t, \"none\")", "pow(abs(x - t), 2.0)"},
    {"x: f32[2, 3]", "f32[2]", "nll_loss(x, arange(2), reduction=\"none\")",
     "stack([-x[0, 0], -x[1, 1]])"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[]", "kl_div(x, sigmoid(t), reduction=\"batchmean\")",
     "kl_div(x, sigmoid(t)) * 3.0"},
    {"x: f32[3, 4]", "f32[3]", "cast(histogram(x, tensor([-9.0, 0.0, 0.25, 9.0])), f32)",
     "cast(stack([sum(cast(x < 0, i32)), sum(cast(x >= 0 && x < 0.25, i32)), "
     "sum(cast(x >= 0.25, i32))]), f32)"},
    {"x: f32[3, 4]", "f32[3, 4]", "cast(bucketize(x, tensor([-0.5, 0.5])), f32)",
     "cast(x > -0.5, f32) + cast(x > 0.5, f32)"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[]", "l1_loss(x, t)", "sum(abs(x - t)) / 6"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[]", "huber_loss(x, t, delta=0.5)",
     "mean(minimum(abs(x - t), 0.5) * (abs(x - t) - 0.5 * minimum(abs(x - t), 0.5)))"},
    {"x: f32[2, 3]", "f32[]", "nll_loss(x, arange(2))", "-(x[0, 0] + x[1, 1]) / 2"},
    {"x: f32[2, 3]", "f32[]", "cross_entropy(x, arange(2))",
     "-(log(softmax(x))[0, 0] + log(softmax(x))[1, 1]) / 2"},
    {"x: f32[2, 3], t: f32[2, 3]", "f32[]", "kl_div(x, sigmoid(t))",
     "mean(sigmoid(t) * (logsigmoid(t) - x))"},
    {"x: f32[3]", "f32[]", "hinge_embedding_loss(x, const(1, f32) - 2.0 * cast(arange(3), f32))",
     "(x[0] + relu(1 - x[1]) + relu(1 - x[2])) / 3"},
    {"x: f32[2, 5]", "f32[2, 5]", "roll(x, 2, axis=1)", "concat([x[:, 3:], x[:, :3]], axis=1)"},
    {"x: f32[5, 2]", "f32[5, 2]", "roll(x, -1, axis=0)", "concat([x[1:], x[:1]], axis=0)"},
    {"x: f32[5, 2]", "f32[5, 2]", "roll(x, 6, axis=-2)", "concat([x[4:], x[:4]], axis=0)"},
    {"a: f32[3, 4], b: f32[3, 4]", "f32[3]", "cosine_similarity(a, b)",
     "sum((a / unsqueeze(norm(a, axis=1), 1)) * (b / unsqueeze(norm(b, axis=1), 1)), axis=1)"},
    {"a: f32[2, 4], b: f32[2, 4]", "f32[]",
     "cosine_embedding_loss(a, b, const(1, f32) - 2.0 * cast(arange(2), f32), 0.25)",
     "(1 - cosine_similarity(a, b)[0] + relu(cosine_similarity(a, b)[1] - 0.25)) / 2"},
    {"a: f32[3, 4], p: f32[3, 4], n: f32[3, 4]", "f32[]", "triplet_margin_loss(a, p, n)",
     "mean(relu(sqrt(sum(pow(abs(a - p + 1e-6), 2.0), axis=1)) - sqrt(sum(pow(abs(a - n + 1e-6), "
     "2.0), axis=1)) + 1))"},
};

static void check_case(const Case *c) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena, "graph g(%s) -> (y: %s, z: %s) {\n  y = %s\n  z = %s\n}",
                                    c->inputs, c->type, c->type, c->function, c->spelled);
    Evaluated e = evaluate(source, NULL);
    const Tensor *y = output_of(&e, 0), *z = output_of(&e, 1);
    int64_t n = tensor_n_elems(y);
    cr_assert(n > 0);
    for (int64_t i = 0; i < n; i++) expect_near(y->data[i], z->data[i], c->function, i);
    arena_free(e.arena);
    arena_free(arena);
}

Test(prelude, functions_are_what_ops_spell_out) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

/* Of an axis N that is known only at run time. */
static const Case dim_cases[] = {
    {"x: f32[2, N, 3], at: i32[]", "f32[2, 1, 3]", "dynamic_slice(x, [0, at, 0], [2, 1, 3])", NULL},
    {"x: f32[2, N]", "f32[2, N]", "roll(x, 1, 1)", NULL},
    {"x: f32[2, N]", "f32[2, N]", "roll(x, -1, 1)", NULL},
    {"x: f32[N, 2]", "f32[N, 2]", "roll(x, 0, 0)", NULL},
    {"x: f32[2, N]", "f32[2, N]", "roll(x, 4, 1)", NULL},
    {"x: f32[N, 3]", "f32[N, 3]", "roll(x, -14, 0)", NULL},
    {"x: f32[N]", "f32[N]", "linspace(0.5, 2.75, N) + 0 * x", NULL},
    {"x: f32[N]", "f64[N]", "linspace(3, -1, N, dtype=f64) + 0 * cast(x, f64)", NULL},
    {"x: f32[1, 2, N, N]", "f32[1, 2, 3, 2]", "adaptive_avg_pool2d(x, [3, 2])", NULL},
    {"x: f32[2, N]", "f32[2, 4]", "adaptive_max_pool1d(x, 4)", NULL},
    {"x: f32[2, N, 3*N]", "f32[2, N, 3]", "adaptive_avg_pool1d(x, 3)", NULL},
    {"x: f32[1, 2, N, 3]", "f32[1, 2, 2*N, 6]", "interpolate(x, scale_factor=2, mode=\"area\")",
     NULL},
    {"x: f32[1, 2, N, 4]", "f32[1, 2, 3*N, 2]", "interpolate(x, [3, 0.5], mode=\"area\")", NULL},
};

static Evaluated evaluate_case(Arena *arena, const Case *c, const char *dim, int64_t extent) {
    const char *source = str_format(arena, "%s\ngraph g(%s) -> (y: %s) {\n  y = %s\n}", dim,
                                    c->inputs, c->type, c->function);
    return evaluate_at(source, extent, NULL);
}

Test(prelude, functions_of_a_dim_are_those_of_its_value) {
    static const int64_t extents[] = {1, 2, 4, 5, 9, 12};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof dim_cases / sizeof *dim_cases; i++)
        for (size_t k = 0; k < sizeof extents / sizeof *extents; k++) {
            const Case *c = &dim_cases[i];
            const char *known = str_format(arena, "dim N = %lld", (long long)extents[k]);
            Evaluated e = evaluate_case(arena, c, "dim N in 1..100", extents[k]),
                      of_number = evaluate_case(arena, c, known, 0);
            const Tensor *y = output_of(&e, 0), *z = output_of(&of_number, 0);
            int64_t n = tensor_n_elems(y);
            cr_assert(n > 0 && n == tensor_n_elems(z));
            for (int64_t j = 0; j < n; j++) expect_near(y->data[j], z->data[j], c->function, j);
            arena_free(e.arena);
            arena_free(of_number.arena);
        }
    arena_free(arena);
}

static const double edges[] = {0.0,  -0.0,     1,         -1,  3e-39, -2e38,
                               3e38, INFINITY, -INFINITY, NAN, 0.25};
enum { N_EDGES = sizeof edges / sizeof *edges };

static void fill_edges(Tensor *inputs) {
    for (size_t i = 0; i < N_EDGES * N_EDGES; i++) {
        inputs[0].data[i] = dtype_round(DT_F32, edges[i / N_EDGES]);
        inputs[1].data[i] = dtype_round(DT_F32, edges[i % N_EDGES]);
    }
}

Test(prelude, functions_of_two_numbers_are_those_of_c) {
    Evaluated e =
        evaluate("graph g(y: f32[11, 11], x: f32[11, 11]) -> (a: f32[11, 11], h: f32[11, 11])"
                 " {\n  a = atan2(y, x)\n  h = hypot(y, x)\n}",
                 fill_edges);
    for (int64_t i = 0; i < N_EDGES * N_EDGES; i++) {
        double y = e.inputs[0].data[i], x = e.inputs[1].data[i];
        double angle = output_of(&e, 0)->data[i], want = atan2(y, x);
        expect_near(angle, want, "atan2", i);
        cr_expect(isnan(want) || !signbit(angle) == !signbit(want), "atan2(%g, %g)", y, x);
        expect_near(output_of(&e, 1)->data[i], dtype_round(DT_F32, hypot(y, x)), "hypot", i);
    }
    arena_free(e.arena);
}

static void fill_halves(Tensor *inputs) {
    for (int64_t i = 0; i < 4; i++) inputs[0].data[i] = (double)i;
}

/* The prelude's own calls are of its own functions and of ops. */
Test(prelude, a_def_of_the_program_hides_a_function_outside_the_prelude_alone) {
    Evaluated e = evaluate("def atan(x) = x * 7.0\n"
                           "def sqrt(x) = x * 3.0\n"
                           "graph g(x: f32[4]) -> (a: f32[4], b: f32[4], c: f32[4]) {\n"
                           "  a = atan(x)\n  b = asin(x * 0.25)\n  c = sqrt(x)\n}",
                           fill_halves);
    for (int64_t i = 0; i < 4; i++) {
        expect_near(output_of(&e, 0)->data[i], 7 * (double)i, "atan", i);
        expect_near(output_of(&e, 1)->data[i], asin((double)i / 4), "asin", i);
        expect_near(output_of(&e, 2)->data[i], 3 * (double)i, "sqrt", i);
    }
    arena_free(e.arena);
}

/* Every op may be hidden, in calls and as a value; what operators mean stays. */
Test(prelude, a_def_of_the_program_hides_each_op) {
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        const char *name = op_info((OpId)op)->name;
        if (op == OP_PARAM) continue; /* a reserved word */
        Arena *arena = arena_new(NULL);
        const char *source = str_format(arena,
                                        "def %s(x) = [x]\ndef call(f, x) = f(x)\n"
                                        "graph g(x: f32[4]) -> (a: f32[4], b: f32[4]) {\n"
                                        "  a = %s(x)[0] + x\n  b = call(%s, x)[0]\n}",
                                        name, name, name);
        Evaluated e = evaluate(source, fill_halves);
        for (int64_t i = 0; i < 4; i++) {
            expect_near(output_of(&e, 0)->data[i], 2 * (double)i, name, i);
            expect_near(output_of(&e, 1)->data[i], (double)i, name, i);
        }
        arena_free(e.arena);
        arena_free(arena);
    }
}
