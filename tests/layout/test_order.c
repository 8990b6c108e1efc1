/* The order of axes of intermediates: which get another order, and what that spares the kernels. */
#include "lib/plans.h"
#include "template/find_im2col.h"

#include <criterion/criterion.h>
#include <string.h>

#define PARAMS                                                       \
    "  param w: bf16[64, 64, 3, 3]\n  param v: bf16[64, 64, 1, 1]\n" \
    "  param s: bf16[64, 1, 1]\n  param t: bf16[64, 1, 1]\n"

static Plan *plan_of(Arena *arena, const char *source, bool off, TargetId target) {
    Module *module = plans_parse(arena, source);
    Plan *plan =
        plans_price(arena, module, 0, off, target, card_of_target(target_get(target)), NULL).plan;
    cr_assert_not_null(plan, "%s", source);
    return plan;
}

/* The buffer of the first temporary whose node has this name. */
static const Buffer *temp_of(const Plan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        const Buffer *buffer = &plan->buffers.data[i];
        const Node *node = graph_node(plan->graph, buffer->node);
        if (buffer->kind == BUFFER_TEMP && node->name && strcmp(node->name, name) == 0)
            return buffer;
    }
    cr_assert_fail("no temporary %s", name);
    return NULL;
}

static uint32_t n_windows(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t v = 0; v < plan->kernels.data[k].n_variants; v++)
            for (uint32_t i = 0; i < plan->kernels.data[k].variants[v].n_maps; i++)
                n += plan->kernels.data[k].variants[v].maps[i].im2col != NULL;
    return n;
}

/* Values come out with the channels innermost, so that each convolution after the first reads
 * windows by the copy engine and each value is stored once. */
#define NET(batch)                                                                           \
    "graph g(x: bf16[" batch ", 64, 28, 28]) -> (y: bf16[" batch ", 64, 14, 14]) {\n" PARAMS \
    "  a = relu(conv2d(x, w, padding=1) * s + t)\n"                                          \
    "  b = relu(conv2d(a, w, padding=1) * s + t)\n"                                          \
    "  c = relu(conv2d(b, w, padding=1) * s + t + a)\n"                                      \
    "  p = max_pool2d(c, 3, stride=2, padding=1)\n"                                          \
    "  d = relu(conv2d(p, v) + t)\n"                                                         \
    "  y = relu(conv2d(d, w, padding=1) + t)\n}\n"
static const char net[] = NET("32"), one_image[] = NET("1");

static void expect_inner_channels(const char *source) {
    static const char *const names[] = {"a", "b", "p", "d"};
    Arena *arena = arena_new(NULL);
    Plan *plan = plan_of(arena, source, false, TARGET_SM_90A);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_eq(temp_of(plan, names[i])->inner, 2, "%s", names[i]);
    cr_expect_geq(n_windows(plan), 3);
    cr_expect_leq(plan->kernels.n - plan_n_init(plan), 7, "six ops and the copy of x: %u",
                  plan->kernels.n - plan_n_init(plan));
    arena_free(arena);
}

Test(order, channels_of_convolutions_lie_innermost) {
    expect_inner_channels(net);
}

/* Search prices parts of the graph, whose inputs and outputs lie as the whole plan has them. With
 * rows of the image innermost, copies of windows would look cheaper. */
Test(order, parts_have_the_orders_of_the_whole) {
    expect_inner_channels(one_image);
}

Test(order, a_kernel_without_products_loops_in_the_order_that_it_stores) {
    Arena *arena = arena_new(NULL);
    Plan *plan = plan_of(arena, net, false, TARGET_SM_90A);
    const Kernel *pool = NULL;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        if (form_info(plan->kernels.data[k].form)->reduces_columns) pool = &plan->kernels.data[k];
    cr_assert_not_null(pool);
    int64_t extent;
    cr_assert(
        dim_is_const(plan->graph->dims, kernel_axis_extent(pool, pool->n_parallel - 1), &extent));
    cr_expect_eq(extent, 64, "channels, not columns of the image: %d", (int)extent);
    arena_free(arena);
}

/* Checks that the named temporaries have their channels innermost on a CPU. */
static void expect_inner_on_cpu(const char *source, uint32_t n, const char *const *names) {
    Arena *arena = arena_new(NULL);
    Plan *plan = plan_of(arena, source, false, TARGET_CPU);
    for (uint32_t i = 0; i < n; i++)
        cr_expect_eq(temp_of(plan, names[i])->inner, 2, "%s", names[i]);
    arena_free(arena);
}

/* A CPU packs windows along k, and stores of vectors along n. */
Test(order, cpus_want_the_same) {
    expect_inner_on_cpu("graph g(x: f32[1, 64, 28, 28]) -> (y: f32[1, 64, 28, 28]) {\n"
                        "  param w: f32[64, 64, 3, 3]\n  param v: f32[64, 64, 1, 1]\n"
                        "  a = relu(conv2d(x, v))\n  h = relu(conv2d(a, w, padding=1))\n"
                        "  y = relu(conv2d(h, v) + a)\n}\n",
                        1, (const char *const[]){"h"});
}

/* Convolutions read their images through pools, concats and paddings, which are computed along the
 * channels too. */
Test(order, values_between_convolutions_lie_alike_on_a_cpu) {
    expect_inner_on_cpu("graph g(x: f32[1, 16, 64, 64]) -> (y: f32[1, 16, 64, 64]) {\n"
                        "  param w: f32[16, 16, 3, 3]\n  param v: f32[16, 32, 3, 3]\n"
                        "  a = relu(conv2d(x, w, padding=1))\n"
                        "  p = max_pool2d(a, 2)\n"
                        "  b = relu(conv2d(p, w, padding=1))\n"
                        "  u = interpolate(b, scale_factor=2)\n"
                        "  y = conv2d(concat([a, u], axis=1), v, padding=1)\n}\n",
                        2, (const char *const[]){"a", "p"});
}

/* A convolution of each channel by itself is computed in any order. */
Test(order, channels_lie_innermost_through_depthwise_convolutions) {
    expect_inner_on_cpu("graph g(x: f32[1, 16, 32, 32]) -> (y: f32[1, 16, 16, 16]) {\n"
                        "  param v: f32[96, 16, 1, 1]\n  param d: f32[96, 1, 3, 3]\n"
                        "  param u: f32[16, 96, 1, 1]\n  a = silu(conv2d(x, v))\n"
                        "  b = silu(conv2d(a, d, stride=2, padding=1, groups=96))\n"
                        "  y = conv2d(b, u)\n}\n",
                        2, (const char *const[]){"a", "b"});
}

typedef struct Kept {
    const char *what, *source;
} Kept;

static const Kept kept[] = {
    {"channels that fill no access",
     "graph g(x: bf16[32, 64, 28, 28]) -> (y: bf16[32, 64, 28, 28]) {\n"
     "  param u: bf16[60, 64, 3, 3]\n  param v: bf16[64, 60, 3, 3]\n"
     "  h = relu(conv2d(x, u, padding=1))\n  y = conv2d(h, v, padding=1)\n}\n"},
    {"products along the last axis too",
     "graph g(x: bf16[8, 64, 32, 32], r: bf16[32, 32]) -> (y: bf16[8, 64, 32, 32], z: bf16[8, "
     "64, 32, 32]) {\n" PARAMS "  h = relu(conv2d(x, w, padding=1))\n"
     "  y = conv2d(h, w, padding=1)\n  z = h @ r\n}\n"},
    {"a transposed value that no product makes",
     "graph g(x: bf16[256, 128], r: bf16[256, 64]) -> (y: bf16[128, 64]) {\n"
     "  h = relu(exp(x))\n  y = transpose(h) @ r\n}\n"},
    {"no tensor cores", "graph g(x: f32[8, 64, 28, 28]) -> (y: f32[8, 64, 28, 28]) {\n"
                        "  param w: f32[64, 64, 3, 3]\n"
                        "  h = relu(conv2d(x, w, padding=1))\n  y = conv2d(h, w, padding=1)\n}\n"},
};

Test(order, other_values_keep_their_order) {
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        Arena *arena = arena_new(NULL);
        Plan *plan = plan_of(arena, kept[i].source, false, TARGET_SM_90A);
        cr_expect_eq(temp_of(plan, "h")->inner, 0, "%s", kept[i].what);
        arena_free(arena);
    }
}

Test(order, unfused_ops_and_outputs_keep_theirs) {
    Arena *arena = arena_new(NULL);
    Plan *unfused = plan_of(arena, net, true, TARGET_SM_90A);
    for (uint32_t i = 0; i < unfused->buffers.n; i++)
        cr_expect_eq(unfused->buffers.data[i].inner, 0);
    Plan *plan = plan_of(arena, net, false, TARGET_SM_90A);
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        cr_expect(plan->buffers.data[i].kind == BUFFER_TEMP || !plan->buffers.data[i].inner);
    arena_free(arena);
}

/* An update begins as a copy of all bytes of the value that it updates, so that value keeps the
 * order of the result. */
#define UPDATED(outputs, updates)                                                           \
    "graph g(x: f32[2, 16, 12, 12], w: f32[16, 16, 3, 3], p: f32[2, 16, 4, 12], i: i32) ->" \
    " (y: f32[2, 16, 10, 10]" outputs ") {\n"                                               \
    "  h = relu(conv2d(x, w, padding=1))\n  y = conv2d(h, w)\n" updates "}\n"

Test(order, values_that_are_updated_keep_theirs) {
    Arena *arena = arena_new(NULL);
    const Plan *alone = plan_of(arena, UPDATED("", ""), false, TARGET_CPU);
    const Plan *updated = plan_of(arena,
                                  UPDATED(", a: f32[2, 16, 12, 12], b: f32[2, 16, 12, 12]",
                                          "  a = dynamic_update_slice(h, p, [0, 0, i, 0])\n"
                                          "  b = dynamic_update_slice(h, p * 2.0, [0, 0, i, 0])\n"),
                                  false, TARGET_CPU);
    cr_expect_eq(temp_of(alone, "h")->inner, 2);
    cr_expect_eq(temp_of(updated, "h")->inner, 0);
    arena_free(arena);
}
