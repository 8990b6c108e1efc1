/* Row pitches of intermediates: who gets one, how much, and what that spares the kernels. */
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Case {
    const char *what, *source;
    int64_t pitch; /* of the only temp, 0: none */
} Case;

#define HEAD "dim T in 1..4096\n"

static const Case cases[] = {
    {"an odd extent",
     "graph g(x: bf16[64, 96], a: bf16[96, 101], b: bf16[101, 64]) -> (y: bf16[64, 64]) {\n"
     "  y = relu(x @ a) @ b\n}\n",
     104},
    {"a long one",
     "graph g(x: f16[64, 96], a: f16[96, 1001], b: f16[1001, 64]) -> (y: f16[64, 64]) {\n"
     "  y = relu(x @ a) @ b\n}\n",
     1024},
    {"long rows of whole accesses",
     "graph g(x: bf16[64, 96], a: bf16[96, 2040], b: bf16[2040, 64]) -> (y: bf16[64, 64]) {\n"
     "  y = relu(x @ a) @ b\n}\n",
     2048},
    {"short rows of whole accesses",
     "graph g(x: bf16[64, 96], a: bf16[96, 72], b: bf16[72, 64]) -> (y: bf16[64, 64]) {\n"
     "  y = relu(x @ a) @ b\n}\n",
     0},
    {"transposed",
     "graph g(x: bf16[64, 96], a: bf16[96, 101], b: bf16[64, 32]) -> (y: bf16[101, 32]) {\n"
     "  y = transpose(relu(x @ a)) @ b\n}\n",
     104},
    {"f64",
     "graph g(x: f64[64, 96], a: f64[96, 101], b: f64[101, 64]) -> (y: f64[64, 64]) {\n"
     "  y = relu(x @ a) @ b\n}\n",
     102},
    {"f32 without tensor cores",
     "graph g(x: f32[64, 96], a: f32[96, 101], b: f32[101, 64]) -> (y: f32[64, 64]) {\n"
     "  y = relu(x @ a) @ b\n}\n",
     0},
    {"tf32",
     "graph g(x: f32[64, 96], a: f32[96, 101], b: f32[101, 64]) -> (y: f32[64, 64]) {\n"
     "  y = matmul(relu(x @ a), b, precision=\"tf32\")\n}\n",
     104},
    {"read by no product",
     "graph g(x: bf16[64, 96], a: bf16[96, 101]) -> (y: bf16[101]) {\n"
     "  h = x @ a\n  y = max(h, 0)\n}\n",
     0},
    {"rows of one element",
     "graph g(x: f64[64, 24], a: f64[24, 1]) -> (y: f64[4, 8, 8]) {\n"
     "  e = expand(x @ a, [4, 64, 8])\n  y = transpose(e, perm=[0, 2, 1]) @ e\n}\n",
     0},
    {"rows that another reader merges",
     "graph g(x: bf16[64, 96], a: bf16[96, 101], b: bf16[101, 64]) -> (y: bf16[64, 64], s: "
     "bf16[8]) {\n"
     "  h = relu(x @ a)\n  y = h @ b\n"
     "  fuse must { r = reshape(h, [8, 808])\n    s = max(r, 1) }\n}\n",
     0},
};

static bool is_copy(const Plan *plan, uint32_t buffer) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (kernel->nodes.n == 0 && kernel_stores_to(kernel, buffer)) return true;
    }
    return false;
}

/* That is not a copy of an input. */
static const Buffer *only_temp(const Plan *plan) {
    const Buffer *temp = NULL;
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        const Buffer *buffer = &plan->buffers.data[i];
        if (buffer->kind != BUFFER_TEMP || is_copy(plan, i)) continue;
        cr_assert_null(temp, "one temp");
        temp = buffer;
    }
    cr_assert_not_null(temp);
    return temp;
}

static Plan *plan_of(Arena *arena, const char *source, bool off, TargetId target) {
    Module *module = plans_parse(arena, source);
    Plan *plan =
        plans_price(arena, module, 0, off, target, card_of_target(target_get(target)), NULL).plan;
    cr_assert_not_null(plan, "%s", source);
    return plan;
}

Test(pad, rows_that_tensor_cores_read_begin_where_they_want_them) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        Plan *plan = plan_of(arena, cases[i].source, false, TARGET_SM_90A);
        const Buffer *temp = only_temp(plan);
        int64_t pitch = 0, bytes, n;
        if (temp->pitch) cr_assert(dim_is_const(plan->graph->dims, temp->pitch, &pitch));
        cr_expect_eq(pitch, cases[i].pitch, "%s: %d", cases[i].what, (int)pitch);
        cr_assert(dim_is_const(plan->graph->dims, buffer_bytes(plan->graph->dims, temp), &bytes));
        cr_assert(
            dim_is_const(plan->graph->dims, shape_n_elems(plan->graph->dims, &temp->shape), &n));
        cr_expect(pitch ? bytes > n * dtype_bytes(temp->dtype)
                        : bytes == n * dtype_bytes(temp->dtype),
                  "%s", cases[i].what);
        Plan *on_cpu = plan_of(arena, cases[i].source, false, TARGET_CPU);
        cr_expect_eq(only_temp(on_cpu)->pitch, DIM_NONE, "%s", cases[i].what);
        arena_free(arena);
    }
}

static const char attention[] = HEAD
    "graph g(q: bf16[4, T, 64], k: bf16[4, T, 64], v: bf16[4, T, 64]) -> (y: bf16[4, T, 64]) {\n"
    "  y = softmax(q @ transpose(k, perm=[0, 2, 1])) @ v\n}\n";

static const char *pitch_text(Arena *arena, const Plan *plan, const Buffer *buffer) {
    Text text = {.arena = arena};
    if (buffer->pitch) dim_print(plan->graph->dims, buffer->pitch, &text);
    return text_str(&text);
}

/* Rows of a symbolic length cost no more than their last access. */
Test(pad, symbolic_rows_are_rounded_up_to_an_access) {
    for (int off = 0; off < 2; off++) {
        Arena *arena = arena_new(NULL);
        Plan *plan = plan_of(arena, attention, off == 1, TARGET_SM_90A);
        uint32_t n_apart = 0;
        for (uint32_t i = 0; i < plan->buffers.n; i++) {
            const char *pitch = pitch_text(arena, plan, &plan->buffers.data[i]);
            if (!*pitch) continue;
            n_apart++;
            cr_expect_str_eq(pitch, "8*((T + 7) / (8))");
        }
        /* The probabilities, and the scores, whose place they take; or the transpose of k. */
        cr_expect_eq(n_apart, 2, "%u", n_apart);
        arena_free(arena);
    }
}

/* Where the rows are the program's own, the copy engine follows them whatever T is, and nothing is
 * compiled for the case that it cannot. */
Test(pad, maps_over_temporaries_are_no_condition) {
    Arena *arena = arena_new(NULL);
    static const char own[] =
        HEAD "graph g(q: bf16[4, T, 64], k: bf16[4, T, 64]) -> (y: bf16[4]) {\n"
             "  param w: bf16[64, 64] = \"w\"\n"
             "  h = softmax(q @ transpose(k, perm=[0, 2, 1])) @ (k @ w)\n"
             "  y = sum(h @ w, axis=[1, 2])\n}\n";
    Plan *plan = plan_of(arena, own, false, TARGET_SM_90A);
    uint32_t n_certain = 0;
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        const Variant *last = &kernel->variants[kernel->n_variants - 1];
        cr_expect_not(variant_has_conditions(plan, kernel, last), "%s", kernel->name);
        n_certain += last->n_maps > 0;
        for (uint32_t v = 0; last->n_maps > 0 && v < kernel->n_variants; v++)
            cr_expect(sched_engine(&kernel->variants[v].sched) == GEMM_WGMMA ||
                      predicate_dim(&kernel->variants[v].predicate, TERM_RANGE));
    }
    cr_expect_eq(n_certain, 2, "%u: of weights by probabilities and by what they give", n_certain);
    arena_free(arena);
}
