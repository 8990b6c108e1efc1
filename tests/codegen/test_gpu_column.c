/* Columns on a GPU as plans, schedules and code: how many launches a sum of any length takes, which
 * segments a block has side by side, and what the assembler makes of it. Results are checked where
 * there is a GPU, by the sweep. */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80};

/* One over the elements and one over what it leaves, however much that is. */
Test(gpu_column, a_reduction_of_any_length_is_two_launches) {
    static const char *const sources[] = {
        "graph g(x: f32[65537, 8]) -> (y: f32[8]) {\n  y = sum(x, axis=0)\n}\n",
        "graph g(x: bf16[536870912, 4]) -> (y: bf16[4]) {\n  y = mean(x, axis=0)\n}\n",
        "graph g(x: f32[1048576, 64]) -> (y: f32[64]) {\n  y = max(x, axis=0)\n}\n",
        "graph g(x: f32[1048576, 64]) -> (y: i32[64]) {\n  y = argmin(x, axis=0)\n}\n",
        "graph g(x: bf16[2147483648]) -> (y: f32) {\n  y = sum(cast(x, f32))\n}\n",
        "graph g(x: f32[2, 536870912]) -> (y: i32[2]) {\n  y = argmax(x, axis=1)\n}\n",
        "dim N in 1..2147483648\ndim M in 1..64\n"
        "graph g(x: f32[N, M]) -> (y: f32[M], z: f32[M]) {\n"
        "  y = sum(x, axis=0)\n  z = sum(x * x, axis=0)\n}\n",
        "dim N in 1..2147483648\ngraph g(x: f32[N]) -> (y: f32) {\n  y = sum(x)\n}\n"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            Compiled c = compiled_new(sources[i], targets[t]);
            const Plan *plan = c.plan;
            cr_assert_eq(plan->kernels.n, 2, "%s%u launches", sources[i], plan->kernels.n);
            cr_expect_neq(plan->kernels.data[0].segment_axis, NO_AXIS);
            cr_expect_eq(plan->kernels.data[1].segment_axis, NO_AXIS);
            compile_free(&c);
        }
    }
}

/* A block has 256 threads: along columns, by 8 chains, by segments side by side. */
static const struct {
    const char *shape;
    uint32_t lanes, part_team; /* of the first variant over elements */
    uint32_t finish_team;      /* of the last over partials */
    int64_t part_grid, finish_grid;
} shapes[] = {{"f32[8192, 8192]", 4, 32, 32, 64 * 32, 256},
              {"f32[1048576, 64]", 4, 16, 2, 4096 / 2, 32},
              {"f32[1048576, 8]", 4, 2, 2, 4096 / 16, 4},
              {"f32[1000000, 3]", 1, 4, 2, 489, 2},
              {"f32[131072, 4096]", 4, 32, 16, 32 * 512, 256},
              {"f32[1048576, 4096]", 4, 32, 4, 32 * 4096, 1024}};

static int64_t const_grid(const Plan *plan, const Variant *variant) {
    int64_t grid = -1;
    dim_is_const(plan->graph->dims, variant->grid, &grid);
    return grid;
}

Test(gpu_column, segments_lie_side_by_side_where_columns_are_few) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char source[160];
        snprintf(source, sizeof source,
                 "graph g(x: %s) -> (y: f32[%s) {\n  y = sum(x, axis=0)\n}\n", shapes[i].shape,
                 strchr(shapes[i].shape, ' ') + 1);
        Compiled c = compiled_new(source, TARGET_SM_90A);
        const Plan *plan = c.plan;
        const Kernel *part = &plan->kernels.data[0], *finish = &plan->kernels.data[1];
        const Variant *first = &part->variants[0],
                      *last = &finish->variants[finish->n_variants - 1];
        cr_expect_eq(first->sched.lanes, shapes[i].lanes, "%s", source);
        cr_expect_eq(first->sched.column.threads_along, shapes[i].part_team, "%s%u", source,
                     first->sched.column.threads_along);
        cr_expect_eq(last->sched.column.threads_along, shapes[i].finish_team, "%s%u", source,
                     last->sched.column.threads_along);
        cr_expect_eq(const_grid(plan, first), shapes[i].part_grid, "%s%lld", source,
                     (long long)const_grid(plan, first));
        cr_expect_eq(const_grid(plan, last), shapes[i].finish_grid, "%s%lld", source,
                     (long long)const_grid(plan, last));
        compile_free(&c);
    }
}

/* Where there may be few partials, they are one segment of 32 columns a block, as they are where
 * there are always few; and the code of those has no level above that of elements. */
Test(gpu_column, few_partials_have_variants_of_their_own) {
    static const char source[] =
        "dim N in 1..1048576\ndim M in 1..4096\n"
        "graph g(x: f32[N, M]) -> (y: f32[M]) {\n  y = sum(x, axis=0)\n}\n";
    Compiled c = compiled_new(source, TARGET_SM_90A);
    const Kernel *finish = &c.plan->kernels.data[1];
    cr_assert_eq(finish->n_variants, 3);
    for (uint32_t v = 0; v < 3; v++) {
        const Variant *variant = &finish->variants[v];
        bool is_last = v == 2;
        cr_expect_eq(predicate_most(&variant->predicate, kernel_n_reduced(finish)),
                     is_last ? INT64_MAX : 256);
        cr_expect_eq(variant->sched.column.threads_along, is_last ? 4 : 32);
        const char *text = compiled_function(&c, finish, v);
        /* Their only barrier is that before the eight chains are joined. Else there are two around
         * the chains of a segment, one for the groups' sums, and two around the next level's. */
        cr_expect_eq(ptx_count(text, "bar.sync"), is_last ? 5 : 1, "variant %u has %u", v,
                     ptx_count(text, "bar.sync"));
    }
    compile_free(&c);
}

/* The threads that store a result join its chains alone. */
Test(gpu_column, accumulators_are_joined_by_the_threads_that_store) {
    static const char source[] =
        "graph g(x: bf16[8192, 8192]) -> (y: f32[8192]) {\n  y = sum(cast(x, f32), axis=0)\n}\n";
    Compiled c = compiled_new(source, TARGET_SM_90A);
    const Kernel *part = &c.plan->kernels.data[0];
    const char *text = compiled_function(&c, part, 0);
    const char *barrier = strstr(text, "bar.sync"), *read = strstr(text, "ld.shared");
    cr_assert(barrier && read);
    const char *branch = strstr(barrier, "bra");
    cr_expect(branch && branch < read, "chains are read before a branch");
    cr_expect(compiled_is_in_registers(&c));
    compile_free(&c);
}
