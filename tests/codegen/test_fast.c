/* --numerics=fast: what is left out and what stays in programs, what a GPU is told, and how far
 * values may be off. That results are right is for `soak --numerics=fast`. */
#include "interp/interp.h"
#include "lib/compiled.h"
#include "lib/faults.h"
#include "lib/pair.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static Compiled fast_of(const char *dtype, const char *expression, TargetId target) {
    char source[300];
    snprintf(source, sizeof source,
             "graph g(x: %s[64, 4096], z: %s[64, 4096]) -> (y: %s[64, 4096]) "
             "{\n  y = %s\n}\n",
             dtype, dtype, dtype, expression);
    compile_with_fast_numerics();
    return compiled_new(source, target);
}

/* Live conversions to the dtype, of all kernels. */
static uint32_t count_roundings(const Plan *plan, Dtype dtype) {
    uint32_t n = 0;
    Arena *arena = arena_new(NULL);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const bool *live = kernel_live_scalars(arena, kernel);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
            const Scalar *s = scalar_get(kernel->scalars, id);
            n += live[id] && s->kind == SCALAR_CVT && s->dtype == dtype;
        }
    }
    arena_free(arena);
    return n;
}

Test(fast, only_stores_and_casts_round) {
    static const struct {
        const char *dtype, *expression;
        Dtype to;
        uint32_t n;
    } cases[] = {{"bf16", "tanh(x * z + x) * exp(x - z) + z", DT_BF16, 1},
                 {"f16", "pad(x * z, low=[0, 0], high=[0, 0]) * x + z", DT_F16, 1},
                 {"bf16", "x * rsqrt(mean(x * x, axis=1, keep=true) + 1e-5) * z", DT_BF16, 1},
                 {"f32", "cast(cast(x * z, bf16), f32) * x", DT_BF16, 1},
                 {"bf16", "cast(cast(x * z, f16), bf16) + x", DT_F16, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Compiled c = fast_of(cases[i].dtype, cases[i].expression, TARGET_SM_90A);
        cr_expect_eq(c.plan->kernels.n, 1, "%s", cases[i].expression);
        cr_expect_eq(count_roundings(c.plan, cases[i].to), cases[i].n, "%s: %u",
                     cases[i].expression, count_roundings(c.plan, cases[i].to));
        compile_free(&c);
    }
}

/* A product that a sum takes and nothing else. */
Test(fast, a_product_that_only_a_sum_reads_becomes_an_fma) {
    static const struct {
        const char *expression;
        bool has_mul, has_add;
    } cases[] = {{"x * z + z", false, false},
                 {"x - x * z", false, false},
                 {"x * z - x", false, false},
                 {"maximum(x * z, x * z + x)", true, true},
                 {"x * z", true, false}};
    static const char *const dtypes[] = {"f32", "f64"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t d = 0; d < 2; d++) {
            Compiled c = fast_of(dtypes[d], cases[i].expression, TARGET_SM_80);
            char mul[20], add[20], fma[20];
            snprintf(mul, sizeof mul, "mul.rn.%s", dtypes[d]);
            snprintf(add, sizeof add, "add.rn.%s", dtypes[d]);
            snprintf(fma, sizeof fma, "fma.rn.%s", dtypes[d]);
            cr_expect_eq(ptx_count(c.bytes, mul) > 0, cases[i].has_mul, "%s", cases[i].expression);
            cr_expect_eq(ptx_count(c.bytes, add) > 0, cases[i].has_add, "%s", cases[i].expression);
            bool is_fused = !cases[i].has_mul && !cases[i].has_add;
            cr_expect_eq(ptx_count(c.bytes, fma) > 0, is_fused, "%s", cases[i].expression);
            compile_free(&c);
        }
}

Test(fast, functions_are_the_machines) {
    static const struct {
        const char *expression, *has, *has_not;
    } cases[] = {
        {"exp(x)", "ex2.approx.ftz.f32", "fma."},    {"tanh(x)", "tanh.approx.f32", "rcp."},
        {"log(x)", "lg2.approx.f32", "fma."},        {"log2(x)", "lg2.approx.f32", "fma."},
        {"sqrt(x)", "sqrt.approx.f32", "sqrt.rn"},   {"rsqrt(x)", "rsqrt.approx.f32", "div."},
        {"z / sqrt(x)", "rsqrt.approx.f32", "div."}, {"x / z", "div.full.f32", "div.rn"},
        {"x / 3.0", "mul.rn.f32", "div."},           {"sin(x)", "sin.approx.f32", "cos."},
        {"cos(x)", "cos.approx.f32", "sin."},        {"softmax(x)", "div.full.f32", "div.rn"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Compiled c = fast_of("f32", cases[i].expression, TARGET_SM_80);
        cr_expect(ptx_count(c.bytes, cases[i].has) > 0, "%s", cases[i].expression);
        cr_expect_eq(ptx_count(c.bytes, cases[i].has_not), 0, "%s", cases[i].expression);
        compile_free(&c);
        c = fast_of("f64", cases[i].expression, TARGET_SM_80);
        cr_expect_eq(ptx_count(c.bytes, cases[i].has), 0, "%s of f64", cases[i].expression);
        compile_free(&c);
    }
}

Test(fast, shorter_forms_are_shorter_and_have_bounds) {
    for (int p = 1; p < PRIM_COUNT; p++) {
        const PrimInfo *info = prim_info((PrimId)p);
        cr_expect(info->is_exact == (info->relative + info->absolute == 0), "%s", info->name);
        if (!info->of) continue;
        cr_expect_lt(info->cost, prim_info(info->of)->cost, "%s", info->name);
        cr_expect(*info->how, "%s", info->name);
        cr_expect_eq(prim_fast(info->of, DT_F32), (PrimId)p, "%s", info->name);
        cr_expect_eq(prim_fast(info->of, DT_F64), info->of, "%s", info->name);
        cr_expect_eq(prim_full((PrimId)p), info->of, "%s", info->name);
    }
}

/* Bounds. */

typedef struct Case {
    Arena *arena;
    Graph *graph;
    Tensor args[2];
    NodeId inputs[2];
} Case;

/* Two tensors of four numbers. */
static Case case_new(Dtype dtype, const double *a, const double *b, bool is_fast) {
    Case c = {.arena = arena_new(NULL)};
    DimTab *dims = dimtab_new(c.arena);
    c.graph = graph_new(c.arena, dims, source_new(c.arena, "t.g", "", 0), "g");
    c.graph->is_fast = is_fast;
    Shape shape = {.rank = 1, .dims = {dim_const(dims, 4)}};
    const int64_t extent = 4;
    for (int k = 0; k < 2; k++) {
        c.inputs[k] = graph_add(c.graph, (Node){.op = OP_INPUT, .dtype = dtype, .shape = shape});
        cr_assert(tensor_new(c.arena, dtype, 1, &extent, &c.args[k]));
        memcpy(c.args[k].data, k ? b : a, 4 * sizeof *a);
    }
    return c;
}

static const double *bounds_of(Case *c, OpId op, Dtype dtype, uint32_t n_args,
                               const double *const *errors) {
    Node node = *graph_node(c->graph, c->inputs[0]);
    node.op = op;
    node.dtype = dtype;
    node.n_args = n_args;
    node.args = c->inputs;
    if (op_info(op)->cls == CLASS_REDUCE) {
        node.attrs.axes = 1;
        node.shape.rank = 0;
    }
    NodeId id = graph_add(c->graph, node);
    Tensor out;
    const char *error = NULL;
    double *bounds = arena_array(c->arena, double, 5);
    cr_assert(
        interp_node_within(c->graph, id, NULL, c->args, errors, &out, bounds, c->arena, &error));
    return bounds;
}

static const double numbers[] = {1, -2, 0.5, 3}, others[] = {1, 0.25, -1, 1e-3};
static const double off[] = {0, 0.01, 0, 0.01}, unknown[] = {0, INTERP_ANY, 0, 0};

Test(fast, bounds_stay_strict_where_numerics_are) {
    Case c = case_new(DT_F32, numbers, others, false);
    const double *bounds = bounds_of(&c, OP_ADD, DT_F32, 2, NULL);
    for (int i = 0; i < 4; i++) cr_expect_eq(bounds[i], 0);
    arena_free(c.arena);
}

Test(fast, errors_go_through_ops) {
    Case c = case_new(DT_F32, numbers, others, true);
    const double *const errors[] = {off, NULL};
    const double *sum = bounds_of(&c, OP_ADD, DT_F32, 2, errors);
    cr_expect(sum[0] > 0 && sum[0] < 4e-7, "a rounding: %g", sum[0]);
    cr_expect(sum[1] >= 0.01 && sum[1] < 0.0101, "%g", sum[1]);
    const double *product = bounds_of(&c, OP_MUL, DT_F32, 2, errors);
    cr_expect(product[3] >= 1e-5 && product[3] < 1.1e-5, "%g", product[3]);
    const double *most = bounds_of(&c, OP_MAXIMUM, DT_F32, 2, NULL);
    cr_expect_eq(most[0], 0, "nothing is rounded");
    const double *power = bounds_of(&c, OP_EXP, DT_F32, 1, errors);
    cr_expect(power[1] > 0.01 * exp(-2) && power[1] < 0.0102 * exp(-2), "%g", power[1]);
    cr_expect(power[0] > exp(1) * 0x1p-16 && power[0] < exp(1) * 0x1p-15, "%g", power[0]);
    arena_free(c.arena);
}

Test(fast, what_may_go_either_way_is_unknown) {
    static const double near[] = {1, -2.005, 0.5, 3};
    Case c = case_new(DT_F32, numbers, near, true);
    const double *const errors[] = {off, NULL};
    const double *less = bounds_of(&c, OP_LESS, DT_BOOL, 2, errors);
    cr_expect(less[0] == 0 && isinf(less[1]) && less[2] == 0 && isinf(less[3]));
    const double *const wide[] = {unknown, NULL};
    const double *total = bounds_of(&c, OP_SUM, DT_F32, 1, wide);
    cr_expect(isinf(total[0]));
    static const double divisors[] = {1, 0.005, 0, 2};
    Case d = case_new(DT_F32, numbers, divisors, true);
    const double *const of_divisors[] = {NULL, off};
    const double *quotient = bounds_of(&d, OP_DIV, DT_F32, 2, of_divisors);
    cr_expect(quotient[0] < 1e-6 && isinf(quotient[1]) && quotient[2] == 0, "%g %g %g", quotient[0],
              quotient[1], quotient[2]);
    arena_free(c.arena);
    arena_free(d.arena);
}

/* Of f16, what overflows is infinite where it is stored and may be a number further on. */
Test(fast, overflow_is_known_where_it_is_stored) {
    static const double large[] = {60000, 300, 1, 1}, factors[] = {60000, 300, 1, 2};
    Case c = case_new(DT_F16, large, factors, true);
    const double *product = bounds_of(&c, OP_MUL, DT_F16, 2, NULL);
    cr_expect(product[0] > 0 && product[0] < 1e-300 && product[1] > 0 && product[1] < 1e-300);
    cr_expect(product[2] > 0 && product[2] < 0x1p-9);
    const double given[] = {product[0], product[1], 0, 0};
    const double inf[] = {INFINITY, INFINITY, 1, 2};
    Case next = case_new(DT_F16, inf, factors, true);
    const double *const errors[] = {given, NULL};
    const double *quotient = bounds_of(&next, OP_DIV, DT_F16, 2, errors);
    cr_expect(isinf(quotient[0]) && isfinite(quotient[3]));
    arena_free(c.arena);
    arena_free(next.arena);
}

/* Of f64, too, which is no wider than what it is computed in: an fma adds before it rounds. */
Test(fast, a_product_that_overflows_may_be_a_number_in_a_sum) {
    static const double large[] = {1e200, 1e200, 2, INFINITY};
    static const double opposite[] = {-INFINITY, 1, 1, 1};
    Case c = case_new(DT_F64, large, large, true);
    const double *product = bounds_of(&c, OP_MUL, DT_F64, 2, NULL);
    cr_expect(product[0] > 0 && product[0] < 1e-300 && product[2] < 1e-14 && product[3] == 0);
    static const double products[] = {INFINITY, INFINITY, 4, INFINITY};
    Case next = case_new(DT_F64, products, opposite, true);
    const double *const errors[] = {product, NULL};
    const double *sum = bounds_of(&next, OP_ADD, DT_F64, 2, errors);
    cr_expect(isinf(sum[0]) && isinf(sum[1]) && isfinite(sum[2]) && sum[3] == 0);
    arena_free(c.arena);
    arena_free(next.arena);
}

/* Whether the fused program is within what the bounds add up to. */
static bool is_right(const char *source, Text *report) {
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    const int64_t extents[DIM_MAX_SYMBOLS] = {33, 33, 33, 33};
    PairData data = {.fill = FILL_UNIFORM, .seed = 5};
    bool ok = pair_compile(&pair, source, target_get(TARGET_CPU), report) &&
              pair_open(&pair, 0, &options, report) && pair_place(&pair, extents, report) &&
              pair_run(&pair, &data, &counts, report);
    pair_free(&pair);
    return ok && counts.n_fast_any < counts.n_fast / 8; /* an argmax may be any */
}

Test(fast, mistakes_are_out_of_the_bounds) {
    static const FaultId faults[] = {
        FAULT_wrong_op,        FAULT_swapped_operands, FAULT_wrong_axis,
        FAULT_missing_mask,    FAULT_wrong_branch,     FAULT_shifted_slice,
        FAULT_wrong_index_map, FAULT_dropped_element,  FAULT_dropped_cast};
    compile_with_fast_numerics();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const FaultInfo *info = fault_info(faults[i]);
        Text report = {.arena = arena_new(NULL)};
        uint32_t n_planted = 0;
        compile_with((DriverHook){0});
        cr_expect(is_right(info->source, &report), "%s: %s", info->name, text_str(&report));
        compile_with(fault_hook(faults[i], &n_planted));
        cr_expect(!is_right(info->source, &report) && n_planted > 0, "%s", info->name);
        arena_free(report.arena);
    }
}
