/* One-block launches of small kernels: which kernels join, which values stay in shared memory, and
 * that the assembler accepts the code without spills. Tests on a card check results. */
#include "lib/compiled.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
enum { MOST_SHARED = 99 * 1024 }; /* shared memory of a block on the smallest target */

#define MLP(B, D)                                                                             \
    "graph mlp(x: " D "[" B ", 64], w0: " D "[64, 128], b0: " D "[128], w1: " D "[128, 64], " \
    "b1: " D "[64], w2: " D "[64, 10], b2: " D "[10]) -> (p: " D "[" B ", 10]) {\n"           \
    "  h0 = relu(x @ w0 + b0)\n  h1 = relu(h0 @ w1 + b1)\n"                                   \
    "  p = softmax(h1 @ w2 + b2, axis=-1)\n}\n"

typedef struct Case {
    const char *source;
    uint32_t kernels[4]; /* of each launch, in order; 0 ends */
} Case;

static const Case cases[] = {
    {MLP("1", "f32"), {4}},
    {MLP("3", "f32"), {4}},
    {MLP("8", "f32"), {4}},
    {MLP("1", "bf16"), {4}},
    {MLP("1", "f64"), {4}},
    /* A launch has the same number of kernels for every size. The softmax shares the tiles of its
     * matmul. */
    {"dim B in 1..64\n" MLP("B", "f32"), {1, 1, 2}},
    /* Odd extents, and fewer accumulators than threads. */
    {"graph odd(x: f16[1, 5], w: f16[5, 7], v: f16[7, 3]) -> (y: f16[1, 3]) {\n"
     "  y = relu(x @ w) @ v\n}\n",
     {2}},
    /* Every form of kernel, and an output that later kernels of the launch read from global
     * memory. */
    {"graph forms(x: f32[12, 18], w: f32[18, 12]) -> (y: f32[12, 12], t: f32[18, 6]) {\n"
     "  h = x @ w\n  s = softmax(transpose(h, perm=[1, 0]), axis=1)\n  y = s + h\n"
     "  k = max(y, axis=0)\n  t = reshape((x * k[0:1])[:, 0:9], shape=[18, 6])\n}\n",
     {4}},
    /* The operand of a concat without elements is copied last, and read where its guard is
     * false. */
    {"graph piece(x: f32[3, 9], w: f16[1, 3], e: f16[1, 0]) -> (y: f32[9], z: f16[1, 4]) {\n"
     "  y = sum(x, axis=0)\n  k = concat([w, w, e, w, w], axis=1)\n  z = k[:, 5:9]\n}\n",
     {2}},
    /* No value in shared memory, since the tensor between the two kernels is empty. */
    {"graph nothing(x: f32[3, 0, 2]) -> (y: f32[0]) {\n"
     "  y = prod(sum(x, axis=2), axis=0)\n}\n",
     {2}},
    /* Empty tensors of an unknown number of rows. */
    {"dim H in 1..24\ngraph rows(x: bf16[H, H, 0], z: i32[H, H, 0]) -> (y: bf16[H, H, 0], "
     "k: i32[H, H, 0]) {\n  y = softmax(x, axis=2)\n  k = z + 1\n}\n",
     {1, 1}},
    /* A row that a cluster reduces is no kernel of a one-block launch. */
    {"graph row(x: f32[1, 16400], w: f32[64, 64], u: f32[8, 64]) -> (z: f32[8, 64], q: f32[1]) {\n"
     "  d = softmax(x, axis=1)\n  q = sum(d * d, axis=[1])\n"
     "  z = softmax(relu((u * q) @ w) @ w, axis=1) @ w\n}\n",
     {1, 4}},
    /* A kernel with work for the whole card separates the small kernels around it. */
    {"graph large(x: f32[1, 64], a: f32[64, 64], b: f32[64, 8192], c: f32[8192, 512], "
     "d: f32[512, 16]) -> (y: f32[1, 16]) {\n  y = (((relu(x @ a) @ b) @ c) @ d)\n}\n",
     {1, 1, 1, 1}},
    /* A row kernel and a matmul that reads the rows. */
    {"graph free(x: f32[40, 128], w: f32[128, 96], v: f32[96, 32]) -> (y: f32[40, 32]) {\n"
     "  s = x @ w\n  p = s - max(s, axis=1, keep=true)\n  y = relu(p @ v)\n}\n",
     {1, 2}},
    /* The source keeps a value in a kernel of its own. */
    {"graph never(x: f32[1, 64], a: f32[64, 64], b: f32[64, 64]) -> (y: f32[1, 64]) {\n"
     "  h = relu(x @ a)\n  fuse never {\n    y = h @ b\n  }\n}\n",
     {1, 1}},
};

/* Every kernel of the launch has the same numbers of threads and variants, and no kernel outside of
 * the launch accesses its values in shared memory. */
static void check_launch(const Plan *plan, const Launch *launch, const char *source) {
    const Kernel *first = launch_kernel(plan, launch, 0);
    for (uint32_t k = 0; k < launch->n; k++) {
        cr_expect_eq(launch_kernel(plan, launch, k)->n_variants, first->n_variants);
        for (uint32_t v = 0; v < first->n_variants; v++)
            cr_expect_eq(launch_kernel(plan, launch, k)->variants[v].sched.threads,
                         first->variants[v].sched.threads);
        for (uint32_t i = 0; i < launch_kernel(plan, launch, k)->args.n; i++) {
            uint32_t buffer = launch_kernel(plan, launch, k)->args.data[i];
            bool is_made = false, is_copied = launch_copies(launch, buffer);
            for (uint32_t b = 0; b < launch->n; b++)
                is_made = is_made || kernel_stores_to(launch_kernel(plan, launch, b), buffer);
            cr_expect(!is_copied || !is_made, "%s", source);
            cr_expect(plan->buffers.data[buffer].space == BUFFER_GLOBAL || is_made, "%s", source);
        }
    }
}

/* Every buffer in shared memory, and every copied buffer, has bytes of its own. */
static void check_offsets(const Plan *plan, const Launch *launch) {
    uint32_t ends = 0;
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch_kernel(plan, launch, k)->args.n; i++) {
            uint32_t buffer = launch_kernel(plan, launch, k)->args.data[i];
            const Buffer *b = &plan->buffers.data[buffer];
            SmemOffset own = {UINT32_MAX, 1};
            if (b->space == BUFFER_GLOBAL && !launch_copies(launch, buffer)) continue;
            uint32_t all = launch_smem_offset(plan, launch, NULL, buffer, &own);
            int64_t bytes = dim_hi(plan->graph->dims, buffer_bytes(plan->graph->dims, b));
            cr_expect(own.offset_bytes % 16 == 0 && own.offset_bytes + bytes <= all);
            cr_expect_leq(own.offset_bytes + SMEM_ACCESS_BYTES, all);
            cr_expect_eq(all, launch_kernel(plan, launch, 0)->variants[0].kept_shared_bytes);
            if (own.offset_bytes < ends) continue; /* checked before */
            cr_expect(own.offset_bytes - ends < 16);
            ends = own.offset_bytes + (uint32_t)bytes;
        }
}

Test(one_block, small_kernels_share_a_block) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
        const Case *own = &cases[i / 2];
        Compiled c = compiled_new(own->source, targets[i % 2]);
        const Plan *plan = c.plan;
        uint32_t at = 0, n = 0;
        for (; at < plan->kernels.n; n++) {
            Launch launch = *plan_launch_of(plan, at);
            cr_assert(n < 4 && own->kernels[n], "%s: too many", own->source);
            cr_expect_eq(launch.n, own->kernels[n], "%s: launch %u has %u", own->source, n,
                         launch.n);
            bool is_one_block = !strstr(own->source, "dim ") && launch.n > 1;
            cr_expect_eq(launch.mode == LAUNCH_ONE_BLOCK, is_one_block, "%s", own->source);
            if (is_one_block) check_launch(plan, &launch, own->source);
            if (is_one_block) check_offsets(plan, &launch);
            at += launch.n;
        }
        cr_expect(n == 4 || !own->kernels[n], "%s: too few", own->source);
        cr_expect_null(plan_verify(plan, c.driver.arena));
        compile_free(&c);
    }
}

/* Values between kernels of the launch are no temporaries, their edges are fused, and the weights
 * are read once. */
Test(one_block, what_passes_is_in_no_memory) {
    Compiled c = compiled_new(MLP("1", "f32"), TARGET_SM_90A);
    const Plan *plan = c.plan;
    for (uint32_t b = 0; b < plan->buffers.n; b++)
        cr_expect_eq(plan->buffers.data[b].space != BUFFER_GLOBAL,
                     plan->buffers.data[b].kind == BUFFER_TEMP);
    for (uint32_t e = 0; e < plan->edges.n; e++)
        cr_expect(plan->edges.data[e].verdict == EDGE_FUSED ||
                  plan->edges.data[e].consumer == NODE_NONE);
    const int64_t *dims = cost_dims(c.driver.arena, plan->graph->dims, NULL);
    const PlanCost *cost = cost_plan(c.driver.arena, plan, card_get(CARD_H200), dims);
    cr_expect_eq(cost->n_launches, 1);
    cr_expect_float_eq(cost->read_bytes + cost->written_bytes, cost->least_bytes, 1);
    cr_expect_float_eq(cost->workspace_bytes, 0, 0);
    cr_expect_not_null(strstr(c.bytes, " 1 512 "), "one block");
    compile_free(&c);
}

/* Whether the launch copies every buffer that none of its kernels writes. */
static bool copies_all(const Plan *plan, const Launch *launch) {
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch_kernel(plan, launch, k)->args.n; i++) {
            uint32_t buffer = launch_kernel(plan, launch, k)->args.data[i];
            bool is_made = false;
            for (uint32_t b = 0; b < launch->n; b++)
                is_made = is_made || kernel_stores_to(launch_kernel(plan, launch, b), buffer);
            if (!is_made && !launch_copies(launch, buffer)) return false;
        }
    return true;
}

static bool holds_nothing(const Plan *plan) {
    DimTab *dims = plan->graph->dims;
    for (uint32_t b = 0; b < plan->buffers.n; b++)
        if (dim_hi(dims, buffer_bytes(dims, &plan->buffers.data[b])) > 0) return false;
    return true;
}

/* One function with few barriers: all copies are asynchronous and before the first barrier, and no
 * load treats a value that a kernel of the launch writes as constant. */
Test(one_block, code_copies_first_and_fits) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
        Compiled c = compiled_new(cases[i / 2].source, targets[i % 2]);
        const Plan *plan = c.plan;
        Launch launch = *plan_launch_of(plan, 0);
        if (launch.mode == LAUNCH_ONE_BLOCK) {
            const char *text = compiled_function(&c, launch_kernel(plan, &launch, 0), 0);
            const char *barrier = strstr(text, "bar.sync"), *copy = strstr(text, "cp.async.ca");
            cr_assert(barrier);
            cr_expect(copy ? copy < barrier : holds_nothing(plan), "%s", cases[i / 2].source);
            cr_expect_null(strstr(barrier, "cp.async.ca"), "%s", cases[i / 2].source);
            if (copies_all(plan, &launch))
                cr_expect_eq(ptx_count(text, "ld.global.nc"), 0, "%s", cases[i / 2].source);
        }
        PtxReport report;
        if (launch.mode == LAUNCH_ONE_BLOCK && compiled_assemble(&c, (PtxOptions){0}, &report)) {
            cr_expect(ptx_is_in_registers(&report), "%s", cases[i / 2].source);
            uint32_t kept = launch_kernel(plan, &launch, 0)->variants[0].kept_shared_bytes;
            for (uint32_t f = 0; f < report.functions.n; f++)
                cr_expect_leq(report.functions.data[f].shared_bytes + kept, MOST_SHARED);
        }
        compile_free(&c);
    }
}

/* The same kernels with other buffers between them are another function. */
Test(one_block, wiring_makes_a_function) {
    static const char tail[] = "(x: f32[1, 40], a: f32[40, 40], b: f32[40, 40]) -> (y: f32[1, 40])"
                               " {\n  h = exp(x @ a)\n  g = exp(h @ b)\n  y = softmax(";
    char source[1024];
    snprintf(source, sizeof source,
             "graph one%sg - h, axis=1)\n}\ngraph two%sh - g, axis=1)\n}\n"
             "graph same%sg - h, axis=1)\n}\n",
             tail, tail, tail);
    Compiled c = compiled_new(source, TARGET_SM_80);
    const Kernel *kernels[3];
    for (int i = 0; i < 3; i++) {
        kernels[i] = c.driver.plans[i]->kernels.data;
        cr_assert_eq(plan_launch_of(c.driver.plans[i], 0)->n, 3);
        cr_expect_eq(kernels[i][2].code, kernels[0][2].code, "each kernel is the same");
    }
    cr_expect(!kernels[1]->variants[0].is_shared);
    cr_expect(kernels[2]->variants[0].is_shared);
    cr_expect_str_eq(kernels[2]->variants[0].symbol, kernels[0]->variants[0].symbol);
    compile_free(&c);
}

/* Kernels that copy more of an input than they read of it are another function too. */
Test(one_block, copies_make_a_function) {
    static const char tail[] = ", 64], w: f32[64, 64]) -> (z: f32[8, 64]) {\n"
                               "  z = softmax(relu(x[0:8] @ w), axis=1) @ w\n}\n";
    char source[512];
    snprintf(source, sizeof source, "graph one(x: f32[16%sgraph two(x: f32[8%s", tail, tail);
    Compiled c = compiled_new(source, TARGET_SM_80);
    const Kernel *kernels[2];
    for (int i = 0; i < 2; i++) {
        kernels[i] = c.driver.plans[i]->kernels.data;
        cr_assert_eq(plan_launch_of(c.driver.plans[i], 0)->n, 3);
    }
    cr_expect_gt(kernels[0]->variants[0].kept_shared_bytes,
                 kernels[1]->variants[0].kept_shared_bytes);
    cr_expect(!kernels[1]->variants[0].is_shared);
    compile_free(&c);
}

/* Whether the argument, if it is in shared memory, lies there as its kernel's variants believe. */
static bool lies_well(const Plan *plan, const Kernel *kernel, uint32_t arg) {
    const Buffer *buffer = &plan->buffers.data[kernel->args.data[arg]];
    DimId begin = kernel_arg_begin(kernel, arg);
    if (buffer->space != BUFFER_SHARED || !begin) return true;
    int64_t bytes = dim_multiple(plan->graph->dims, begin) * dtype_bytes(buffer->dtype);
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (bytes % predicate_alignment(&kernel->variants[v].predicate, arg) != 0) return false;
    return true;
}

/* A piece of a concat in shared memory may begin anywhere, and the runtime checks no pointer to
 * it. So vectors are not stored to it, and no variant is made for it. */
Test(one_block, pieces_in_shared_memory_lie_as_they_are_stored) {
    char source[8192];
    size_t n = (size_t)sprintf(source, "graph g(x: f32[8]) -> (y: f32[8]) {\n  v0 = x\n");
    for (int i = 1; i <= 96; i++)
        n += (size_t)sprintf(
            source + n, "  v%d = pad(v%d, low=[2], high=[2], mode=\"reflect\")[2:10]\n", i, i - 1);
    sprintf(source + n, "  y = v96\n}\n");
    Compiled c = compiled_new(source, TARGET_SM_90A);
    uint32_t n_pieces = 0;
    for (uint32_t k = 0; k < c.plan->kernels.n; k++) {
        const Kernel *kernel = &c.plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            cr_expect(lies_well(c.plan, kernel, i), "%s, argument %u", kernel->name, i);
            n_pieces += c.plan->buffers.data[kernel->args.data[i]].space == BUFFER_SHARED &&
                        kernel_arg_begin(kernel, i) != DIM_NONE;
        }
    }
    cr_expect(n_pieces > 0);
    compile_free(&c);
}

/* A row kernel that would be cheapest in a one-block launch with the matmul that reads it, while
 * the source wants it in the blocks of the matmul that it reads. */
Test(one_block, no_block_of_the_source_is_split) {
    static const char source[] =
        "graph must(x: f32[40, 128], w: f32[128, 96], v: f32[96, 32]) -> (y: f32[40, 32]) {\n"
        "  fuse must {\n    s = x @ w\n    p = s - max(s, axis=1, keep=true)\n  }\n"
        "  y = relu(p @ v)\n}\n";
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        Compiled c = compiled_new(source, targets[i]);
        Launch launch = *plan_launch_of(c.plan, 0);
        cr_expect_eq(launch.n, 2);
        cr_expect_eq(launch.mode, LAUNCH_SEQUENCE);
        compile_free(&c);
    }
}
