/* `online` blocks of rows that their greatest absolute value divides: spellings that become two
 * ops, one for the product and one for the greatest values, and spellings that are errors. */
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* The body of a graph of 5 rows of 70 keys; `s` are the rows and `a` their greatest absolute
 * values. */
typedef struct Spelling {
    const char *name, *body;
} Spelling;

#define ROWS "s = x @ w; a = max(abs(s), axis=1, keep=true); "
#define DOT "y = cast(matmul(q, i, out=i32), f32) * "
#define FLOAT "y = matmul(q, h, out=f32) * "

static const Spelling spellings[] = {
    {"divided and scaled", ROWS "q = cast(round(s / a * 127), i8); " DOT "(a / 127)"},
    {"scaled and divided", ROWS "q = cast(round(s * 127 / a), i8); " DOT "(a / 127)"},
    {"multiplied", ROWS "q = cast(round(s * (127 / a)), i8); " DOT "a / 127"},
    {"by a reciprocal", ROWS "q = cast(round(s * (1 / a) * 127), i8); " DOT "a * (1 / 127.0)"},
    {"by a scale of rows", ROWS "d = a / 127; q = cast(round(s / d), i8); " DOT "d"},
    {"truncated", ROWS "q = cast(s / a * 127, i8); " DOT "(a / 127)"},
    {"clamped after rounding",
     ROWS "q = cast(clamp(round(s / a * 127), -128, 127), i8); " DOT "(a / 127)"},
    {"clamped before rounding",
     ROWS "q = cast(round(clamp(s / a * 127, -127, 127)), i8); " DOT "(a / 127)"},
    {"clamped before scaling",
     ROWS "q = cast(round(clamp(s / a, -1, 1) * 127), i8); " DOT "(a / 127)"},
    {"clamped on one side",
     ROWS "q = cast(round(minimum(s / a * 127, 127.0)), i8); " DOT "(a / 127)"},
    {"at least a number",
     ROWS "d = maximum(a, 1e-6); q = cast(round(s / d * 127), i8); " DOT "(d / 127)"},
    {"a scale of at least a number",
     ROWS "d = maximum(a / 127, 1e-6); q = cast(round(s / d), i8); " DOT "d"},
    {"the greater of maximum and minimum",
     "s = x @ w; a = maximum(max(s, axis=1, keep=true), -min(s, axis=1, keep=true)); "
     "q = cast(round(s / a * 127), i8); " DOT "(a / 127)"},
    {"the maximum of both signs", "s = x @ w; a = max(maximum(s, -s), axis=1, keep=true); "
                                  "q = cast(round(s / a * 127), i8); " DOT "(a / 127)"},
    {"without its axis", "s = x @ w; b = max(abs(s), axis=1); a = reshape(b, [5, 1]); "
                         "q = cast(round(s / a * 127), i8); " DOT "(a / 127)"},
    {"of no sign", "u = bitcast(i, u8); s = relu(x @ w); a = max(s, axis=1, keep=true); "
                   "q = cast(round(s / a * 255), u8); "
                   "y = cast(matmul(q, u, out=i32), f32) * (a / 255)"},
    {"loaded", "a = max(abs(x), axis=1, keep=true); q = cast(round(x / a * 127), i8); "
               "y = cast(matmul(q, i[:6], out=i32), f32) * (a / 127)"},
    {"f8e4m3", ROWS "q = cast(s * (448 / a), f8e4m3); " FLOAT "(a / 448)"},
    {"f8e5m2", ROWS "q = cast(s / a * 57344, f8e5m2); " FLOAT "(a / 57344)"},
    {"bf16", ROWS "q = cast(s / a, bf16); y = matmul(q, cast(h, bf16), out=f32) * a"},
    {"not cast", ROWS "y = (s / a) @ cast(h, f32) * a"},
    {"rounded and not cast", ROWS "y = round(s / a * 127) @ cast(h, f32) * (a / 127)"},
    {"never multiplied", ROWS "q = cast(round(s / a * 127), i8); "
                              "y = cast(matmul(q, i, out=i32), f32) / 1000"},
    {"values on the left",
     "s = x @ w; a = max(abs(s), axis=1, keep=true); "
     "q = cast(transpose(round(s / a * 127)), i8); "
     "y = transpose(cast(matmul(transpose(i), q, out=i32), f32)) * (a / 127)"},
};

static const char *source_of(Arena *arena, const char *body, bool is_online) {
    return str_format(arena,
                      "graph g(x: f32[5, 6], w: f32[6, 70], i: i8[70, 3], h: f8e4m3[70, 3]) -> "
                      "(y: f32[5, 3]) {\n%s  %s\n%s}\n",
                      is_online ? "  online {\n" : "", body, is_online ? "  }\n" : "");
}

static void count_ops(const Graph *graph, uint32_t *n_products, uint32_t *n_left) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        *n_products += graph_is_online(graph, id) && !op_info(graph_node(graph, id)->op)->row;
        *n_left += graph_class(graph, id) == CLASS_REDUCE;
    }
}

Test(online_quantize, all_spellings_are_one_op, .timeout = 60) {
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        Arena *arena = arena_new(NULL);
        const char *name = spellings[i].name;
        Compiled online = compiled_new(source_of(arena, spellings[i].body, true), TARGET_CPU);
        Compiled as_written = compiled_new(source_of(arena, spellings[i].body, false), TARGET_CPU);
        uint32_t n_products = 0, n_left = 0;
        count_ops(online.module->graphs.data[0], &n_products, &n_left);
        /* Rows that are moved before the product are not those of the greatest values. */
        bool is_moved = strstr(name, "left");
        cr_expect(n_products == 1 && n_left == is_moved, "%s: %u products, %u reductions", name,
                  n_products, n_left);
        const double *want = plans_values(arena, as_written.module->graphs.data[0]);
        const double *got = plans_values(arena, online.module->graphs.data[0]);
        for (int k = 0; k < 5 * 3; k++)
            cr_expect(fabs(got[k] - want[k]) <= 0.02 * fabs(want[k]) + 0.02,
                      "%s, element %d: %g, not %g", name, k, got[k], want[k]);
        compile_free(&online), compile_free(&as_written);
        arena_free(arena);
    }
}

/* Scores are made once: by one kernel, and no other than that of the product reads them. */
Test(online_quantize, the_product_has_the_greatest_values, .timeout = 60) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        if (strstr(spellings[i].name, "left") || strstr(spellings[i].name, "loaded")) continue;
        Compiled p = compiled_new(source_of(arena, spellings[i].body, true), TARGET_CPU);
        uint32_t n_online = 0;
        for (uint32_t k = 0; k < p.plan->kernels.n; k++)
            n_online += p.plan->kernels.data[k].form == FORM_ONLINE;
        cr_expect(n_online == 1, "%s: %u kernels of the op, of %u", spellings[i].name, n_online,
                  p.plan->kernels.n);
        compile_free(&p);
    }
    arena_free(arena);
}

/* A CPU makes the scores in the launch of the product, to the same bits as kernels of their own
 * (`fusec verify` compares them). */
Test(online_quantize, a_cpu_makes_the_scores_in_the_launch) {
    Compiled p = compiled_new(
        "graph g(x: f32[512, 256], w: f32[256, 1024], v: i8[1024, 256]) -> (y: f32[512, 256]) {\n"
        "  online {\n    s = relu(x @ w)\n    a = maximum(max(abs(s), axis=1, keep=true), 1e-6)\n"
        "    q = cast(round(s / a * 127), i8)\n"
        "    y = cast(matmul(q, v, out=i32), f32) * (a / 127)\n  }\n}\n",
        TARGET_CPU_V4);
    cr_expect_eq(p.plan->launches.n, 1u);
    cr_expect_eq(p.plan->launches.data[0].mode, LAUNCH_GEMM_ONLINE);
    compile_free(&p);
}
