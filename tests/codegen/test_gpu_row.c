/* Rows on a GPU as schedules and code: which are resident, how many blocks share one, what passes
 * between those, and that the assembler hardly spills. Results are checked where there is a GPU, by
 * the sweep. */
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of the kernel that spills most; 0 where there is no assembler to ask. */
static uint32_t spilled_bytes(const Compiled *p) {
    PtxReport report;
    uint32_t most = 0;
    if (!compiled_assemble(p, (PtxOptions){0}, &report)) return 0;
    for (uint32_t i = 0; i < report.functions.n; i++)
        if (report.functions.data[i].spill_store_bytes > most)
            most = report.functions.data[i].spill_store_bytes;
    return most;
}

/* Softmax over rows of constant length. */
static const struct {
    const char *dtype;
    int length;
    uint32_t lanes, threads, resident, cluster, min_blocks; /* of the first variant */
} softmaxes[] = {{"bf16", 4096, 8, 128, 4, 0, 0},   {"bf16", 8192, 4, 256, 8, 0, 0},
                 {"f32", 8192, 4, 256, 8, 0, 0},    {"bf16", 16384, 4, 256, 16, 0, 3},
                 {"f32", 16384, 4, 256, 16, 0, 2},  {"bf16", 32768, 4, 256, 16, 2, 3},
                 {"f16", 65536, 4, 256, 16, 4, 3},  {"bf16", 131072, 4, 256, 16, 8, 3},
                 {"f32", 131072, 4, 256, 16, 8, 2}, {"bf16", 100003, 1, 512, 32, 7, 2},
                 {"bf16", 262144, 8, 128, 0, 0, 0}};

Test(gpu_row, long_rows_are_kept_by_clusters) {
    for (size_t i = 0; i < sizeof softmaxes / sizeof softmaxes[0]; i++) {
        char source[256];
        snprintf(
            source, sizeof source,
            "graph g(x: %s[256, %d]) -> (y: %s[256, %d]) {\n  fuse must { y = softmax(x) }\n}\n",
            softmaxes[i].dtype, softmaxes[i].length, softmaxes[i].dtype, softmaxes[i].length);
        Compiled p = compiled_new(source, TARGET_SM_90A);
        cr_assert_eq(p.plan->kernels.n, 1, "%s", source);
        const Kernel *kernel = &p.plan->kernels.data[0];
        const Sched *s = &kernel->variants[0].sched;
        bool is_wanted = s->lanes == softmaxes[i].lanes && s->threads == softmaxes[i].threads &&
                         s->row.resident == softmaxes[i].resident &&
                         s->cluster == softmaxes[i].cluster &&
                         s->min_blocks == softmaxes[i].min_blocks;
        cr_expect(is_wanted, "%slanes %u, threads %u, resident %u, cluster %u, blocks %u", source,
                  s->lanes, s->threads, s->row.resident, s->cluster, s->min_blocks);
        uint32_t n_clusters = 0;
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            n_clusters += kernel->variants[v].sched.cluster > 1;
        cr_expect_eq(ptx_count(p.bytes, ".reqnctapercluster"), n_clusters);
        /* All have begun, which promises nothing of memory; then two exchanges. */
        cr_expect_eq(ptx_count(p.bytes, "barrier.cluster.wait"), n_clusters);
        cr_expect_eq(ptx_count(p.bytes, "barrier.cluster.arrive.relaxed"), n_clusters);
        cr_expect_eq(ptx_count(p.bytes, "barrier.cluster.arrive"), n_clusters);
        cr_expect_eq(ptx_count(p.bytes, "st.async"), 2 * n_clusters);
        cr_expect_eq(ptx_count(p.bytes, "mbarrier.try_wait"), 2 * n_clusters);
        /* Of three blocks each thread may put aside where its elements are. */
        uint32_t most = s->min_blocks == 3 ? 8 : 0, spilled = spilled_bytes(&p);
        cr_expect_leq(spilled, most, "%s%u bytes are spilled", source, spilled);
        compile_free(&p);
    }
}

/* Softmax over rows that are no whole vectors. */
static const struct {
    int length;
    uint32_t threads, threads_per_row, resident, slots;
} odd_rows[] = {{3, 128, 1, 3, 4},       {7, 128, 2, 4, 4},       {15, 128, 4, 4, 4},
                {17, 128, 4, 5, 8},      {33, 128, 8, 5, 8},      {101, 128, 16, 7, 8},
                {255, 128, 16, 16, 16},  {257, 128, 32, 9, 16},   {513, 128, 32, 17, 32},
                {1001, 128, 32, 32, 32}, {4095, 128, 128, 32, 8}, {8191, 256, 256, 32, 4}};

/* The fewer threads a row has, the more rows there are at a time. Threads of a warp share out what
 * they have of a sum, half at each step, so that joining it takes an exchange for every slot but
 * one, or until there is a slot for each, one for each bit of a lane's number that is left, and
 * then one for each bit of what lanes share. A maximum, which no order changes, has one accumulator
 * and takes one for each bit. */
Test(gpu_row, rows_of_single_elements_have_several_accumulators_a_thread) {
    for (size_t i = 0; i < sizeof odd_rows / sizeof *odd_rows; i++) {
        char source[160];
        snprintf(source, sizeof source,
                 "graph g(x: f32[70001, %d]) -> (y: f32[70001, %d]) {\n  y = softmax(x)\n}\n",
                 odd_rows[i].length, odd_rows[i].length);
        Compiled c = compiled_new(source, TARGET_SM_90A);
        cr_assert_eq(c.plan->kernels.n, 1, "%s", source);
        const Sched *s = &c.plan->kernels.data[0].variants[0].sched;
        bool is_wanted = s->lanes == 1 && s->threads == odd_rows[i].threads &&
                         s->row.threads_per_row == odd_rows[i].threads_per_row &&
                         s->row.resident == odd_rows[i].resident &&
                         s->row.slots == odd_rows[i].slots;
        cr_expect(is_wanted, "%sthreads %u, per row %u, resident %u, slots %u", source, s->threads,
                  s->row.threads_per_row, s->row.resident, s->row.slots);
        uint32_t in_warp = s->row.threads_per_row < 32 ? s->row.threads_per_row : 32, n = 0,
                 held = s->row.slots, shared = 1;
        for (uint32_t k = in_warp; k > 1; k /= 2) {
            n += 1 + (held > 1 ? held / 2 : 1);
            shared *= held > 1 ? 2 : 1;
            held = held > 1 ? held / 2 : 1;
        }
        for (uint32_t k = s->row.threads_per_row > 32 ? s->row.threads_per_row / 32 * s->row.slots
                                                      : 1;
             k > 1; k /= 2)
            n += 2;
        for (uint32_t k = s->row.threads_per_row > 32 ? 1 : shared; k > 1; k /= 2) n++;
        uint32_t n_found = ptx_count(compiled_function(&c, &c.plan->kernels.data[0], 0), "shfl");
        cr_expect_eq(n_found, n, "%s%u exchanges, not %u", source, n_found, n);
        cr_expect_eq(spilled_bytes(&c), 0, "%s", source);
        compile_free(&c);
    }
}

/* Threads agree on the extreme before they look for where it is: two exchanges for each bit of a
 * lane's number, and beside that four comparisons and choices for an element. */
Test(gpu_row, an_argmax_finds_the_value_then_its_position) {
    Compiled c = compiled_new("graph g(x: bf16[130816, 513]) -> (y: i32[130816]) {\n"
                              "  y = argmax(x, axis=1)\n}\n",
                              TARGET_SM_90A);
    const Kernel *kernel = &c.plan->kernels.data[0];
    const Sched *s = &kernel->variants[0].sched;
    cr_assert(s->row.threads_per_row == 32 && s->row.slots > 1, "threads per row %u, slots %u",
              s->row.threads_per_row, s->row.slots);
    Str text = compiled_function(&c, kernel, 0);
    cr_expect_eq(ptx_count(text, "shfl"), 10);
    uint32_t n_chosen = ptx_count(text, "selp"), most = 2 * s->row.resident + 8;
    cr_expect_leq(n_chosen, most, "%u choices, not %u", n_chosen, most);
    cr_expect_eq(spilled_bytes(&c), 0);
    compile_free(&c);
}

/* Rows that all run at once have more threads each, as long as these have something to do. */
Test(gpu_row, a_few_rows_have_more_threads) {
    static const struct {
        int n_rows, length;
        uint32_t lanes, threads, threads_per_row, resident;
    } rows[] = {{1, 10, 2, 128, 8, 1},      {64, 200, 8, 128, 32, 1},
                {64, 1001, 1, 256, 256, 4}, {512, 1001, 1, 256, 256, 4},
                {4096, 7, 1, 128, 2, 4},    {4096, 1001, 1, 128, 32, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char source[160];
        snprintf(source, sizeof source,
                 "graph g(x: bf16[%d, %d]) -> (y: bf16[%d, %d]) {\n  y = softmax(x)\n}\n",
                 rows[i].n_rows, rows[i].length, rows[i].n_rows, rows[i].length);
        Compiled c = compiled_new(source, TARGET_SM_90A);
        const Sched *s = &c.plan->kernels.data[0].variants[0].sched;
        bool is_wanted = s->lanes == rows[i].lanes && s->threads == rows[i].threads &&
                         s->row.threads_per_row == rows[i].threads_per_row &&
                         s->row.resident == rows[i].resident;
        cr_expect(is_wanted, "%slanes %u, threads %u, per row %u, resident %u", source, s->lanes,
                  s->threads, s->row.threads_per_row, s->row.resident);
        compile_free(&c);
    }
}

/* Where clusters are, one launch is predicted to be the fastest. */
Test(gpu_row, one_launch_where_there_are_clusters) {
    static const char source[] =
        "graph g(x: bf16[256, 131072]) -> (y: bf16[256, 131072]) {\n  y = softmax(x)\n}\n";
    Compiled with = compiled_new(source, TARGET_SM_90A),
             without = compiled_new(source, TARGET_SM_80);
    cr_expect_eq(with.plan->kernels.n, 1);
    for (uint32_t k = 0; k < without.plan->kernels.n; k++)
        cr_expect_leq(without.plan->kernels.data[k].variants[0].sched.cluster, 1);
    compile_free(&with);
    compile_free(&without);
}

/* Of symbolic length: ascending limits, no cluster, and a last variant that takes any row. */
/* Rows of ten, in a block of threads for more rows than there are: threads without a row repeat the
 * last, so that no count is 0 and no quotient is by 0. */
Test(gpu_row, threads_without_a_row_repeat_the_last) {
    Compiled p = compiled_new("graph g(x: f32[3, 10]) -> (y: f32[3, 10]) {\n  y = softmax(x)\n}\n",
                              TARGET_SM_90A);
    const Kernel *kernel = &p.plan->kernels.data[0];
    const Sched *s = &kernel->variants[0].sched;
    cr_assert_gt(s->row.resident, 0);
    cr_assert_gt(s->threads / s->row.threads_per_row, 3);
    const char *text = compiled_function(&p, kernel, 0);
    cr_expect_eq(ptx_count(text, ", 10, 0, %p"), 0);
    cr_expect_gt(ptx_count(text, "st.global"), 0);
    compile_free(&p);
}

Test(gpu_row, each_length_has_its_variant) {
    static const struct {
        int64_t limit;
        uint32_t cluster;
    } wanted[] = {{16, 0},    {64, 0},    {256, 0},    {1024, 0}, {4096, 0}, {8192, 0}, {16384, 0},
                  {32768, 2}, {65536, 4}, {131072, 8}, {0, 0},    {2, 0},    {8, 0},    {32, 0},
                  {256, 0},   {512, 0},   {1024, 0},   {2048, 0}, {4096, 0}, {8192, 0}};
    static const char source[] =
        "dim R in 1..4096\ndim D in 1..1048576\n"
        "graph g(x: bf16[R, D]) -> (y: bf16[R, D]) {\n  y = softmax(x)\n}\n";
    enum { N_WANTED = sizeof wanted / sizeof *wanted };
    Compiled p = compiled_new(source, TARGET_SM_90A);
    const Kernel *kernel = &p.plan->kernels.data[0];
    cr_assert_eq(kernel->n_variants, N_WANTED + 1);
    for (uint32_t v = 0; v < N_WANTED; v++) {
        const Variant *variant = &kernel->variants[v];
        const PredicateTerm *range = predicate_term(&variant->predicate, TERM_RANGE, 0);
        cr_expect_eq(range ? range->most : 0, wanted[v].limit);
        cr_expect(!range || range->least == INT64_MIN);
        cr_expect_eq(variant->sched.row.resident > 0, wanted[v].limit > 0);
        cr_expect_eq(variant->sched.cluster, wanted[v].cluster);
    }
    cr_expect_null(predicate_term(&kernel->variants[N_WANTED].predicate, TERM_ALIGNED, 0));
    cr_expect_eq(spilled_bytes(&p), 0);
    compile_free(&p);
}

/* What is longer than a variant's rows is the next one's. */
Test(gpu_row, a_longest_length_is_a_condition) {
    static const char source[] =
        "dim R in 1..4096\ndim D in 1..1048576\n"
        "graph g(x: bf16[R, D]) -> (y: bf16[R, D]) {\n  y = softmax(x)\n}\n";
    Compiled p = compiled_new(source, TARGET_SM_90A);
    const char *text = (const char *)p.bytes;
    cr_expect(strstr(text, "&l:D:16384 ") && strstr(text, "&l:D:32768 "), "%.4000s", text);
    compile_free(&p);
}

/* One divisor for a row: one reciprocal, one look whether any of 16 elements of a thread is
 * unusual, and no division but in one loop for those. */
Test(gpu_row, a_row_divides_by_its_sum_once) {
    static const char *const types[] = {"bf16[256, 4096]", "bf16[256, 131072]", "f32[256, 8192]",
                                        "bf16[256, 99999]"};
    static const uint32_t n_looks[] = {2, 4, 2, 2};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char source[256];
        snprintf(source, sizeof source, "graph g(x: %s) -> (y: %s) {\n  y = softmax(x)\n}\n",
                 types[i], types[i]);
        Compiled p = compiled_new(source, TARGET_SM_90A);
        const Kernel *kernel = &p.plan->kernels.data[0];
        const char *text = compiled_function(&p, kernel, 0);
        cr_expect_gt(kernel->variants[0].sched.row.resident, 1);
        cr_expect_eq(ptx_count(text, "rcp.rn.f32"), 1, "%s", source);
        uint32_t n = ptx_count(text, "rcp.approx.ftz.f64");
        cr_expect_eq(n, n_looks[i], "%u: %s", n, source);
        cr_expect_eq(ptx_count(text, "div.rn.f32"), 0, "%s", source);
        compile_free(&p);
    }
}

/* Places a constant distance apart are one pointer: only loads and stores have the distance. */
Test(gpu_row, steps_of_a_row_share_an_address) {
    static const char source[] =
        "graph g(x: bf16[256, 131072]) -> (y: bf16[256, 131072]) {\n  y = softmax(x)\n}\n";
    Compiled p = compiled_new(source, TARGET_SM_90A);
    const char *text = compiled_function(&p, &p.plan->kernels.data[0], 0);
    cr_expect_eq(ptx_count(text, "ld.global"), 16);
    cr_expect_leq(ptx_count(text, "mul.wide.s32"), 2);
    compile_free(&p);
}

/* An element less the largest of its row is at most 0, so that e^x has no upper bound to heed. */
Test(gpu_row, exp_of_what_is_at_most_0_has_one_bound) {
    static const struct {
        const char *subtrahend;
        bool is_largest;
    } cases[] = {{"max(x, axis=1, keep=true)", true},
                 {"min(x, axis=1, keep=true)", false},
                 {"max(x * 2.0, axis=1, keep=true)", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char source[256];
        snprintf(source, sizeof source,
                 "graph g(x: f32[256, 4096]) -> (y: f32[256, 4096]) {\n  y = exp(x - %s)\n}\n",
                 cases[i].subtrahend);
        Compiled p = compiled_new(source, TARGET_SM_90A);
        bool has_upper = strstr(p.bytes, "0f42B17218") != NULL; /* ln of the largest */
        cr_expect_eq(has_upper, !cases[i].is_largest, "%s", source);
        compile_free(&p);
    }
}

/* Rows of two tensors at once: one kernel of variants that the assembler hardly spills. */
Test(gpu_row, rows_of_two_tensors_hardly_spill, .timeout = 300) {
    static const char *const bodies[] = {"softmax(x) * softmax(z)",
                                         "softmax(softmax(x) * softmax(z))",
                                         "rmsnorm(x, g) * rmsnorm(z, g)"};
    static const char *const lengths[] = {"100", "1024", "8192", "T"};
    for (size_t i = 0; i < 3 * 4 * 2; i++) {
        const char *dtype = i & 1 ? "bf16" : "f32", *n = lengths[i / 2 % 4];
        char source[512];
        snprintf(source, sizeof source,
                 "dim T in 1..16384\ngraph p(x: %s[2048, %s], z: %s[2048, %s], g: %s[%s])"
                 " -> (y: %s[2048, %s]) {\n  fuse must { y = %s }\n}\n",
                 dtype, n, dtype, n, dtype, n, dtype, n, bodies[i / 8]);
        Compiled p = compiled_new(source, TARGET_SM_90A);
        cr_expect_eq(p.plan->kernels.n, 1, "%s", source);
        cr_expect_leq(spilled_bytes(&p), 64, "%s", source);
        compile_free(&p);
    }
}

/* Microseconds on an H200, of rows of single elements. */
Test(gpu_row, prices_are_what_was_measured) {
    static const struct {
        int n_rows, length;
        const char *expression;
        double us;
    } rows[] = {{261123, 257, "softmax(x)", 118},         {131328, 511, "softmax(x)", 96},
                {16384, 4095, "softmax(x)", 85},          {1000000, 33, "softmax(x)", 71},
                {9586980, 7, "softmax(x)", 124},          {130816, 513, "softmax(x)", 117},
                {67041, 1001, "softmax(x)", 94},          {13419, 5001, "softmax(x)", 87},
                {4473924, 15, "layernorm(x, a, b)", 127}, {261123, 257, "layernorm(x, a, b)", 121},
                {67041, 1001, "layernorm(x, a, b)", 91},  {13419, 5001, "layernorm(x, a, b)", 91}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(NULL);
        int m = rows[i].n_rows, n = rows[i].length;
        const char *source =
            str_format(arena,
                       "graph g(x: bf16[%d, %d], a: bf16[%d], b: bf16[%d])"
                       " -> (y: bf16[%d, %d], z: bf16) {\n  y = %s\n  z = a[0] + b[0]\n}\n",
                       m, n, n, n, m, n, rows[i].expression);
        Module *module = plans_parse(arena, source);
        PricedPlan p =
            plans_price(arena, module, 0, false, TARGET_SM_90A, card_get(CARD_H200), NULL);
        double us = 0;
        for (uint32_t k = 0; k < p.plan->kernels.n; k++)
            us += p.plan->kernels.data[k].form == FORM_ROW ? p.cost->kernels[k].us : 0;
        cr_expect_lt(fabs(us - rows[i].us), 0.25 * rows[i].us, "%s%.1f us", source, us);
        arena_free(arena);
    }
}

/* Nor those of norms, which read weights as they store: at 16 bits three blocks share a processor.
 * Most where steps are masked, by 17000 elements. */
Test(gpu_row, norms_of_long_rows_hardly_spill, .timeout = 300) {
    static const char *const bodies[] = {"layernorm(x, a, b)", "rmsnorm(x, a)",
                                         "layernorm(x + z, a, b)"};
    static const struct {
        int length;
        uint32_t most;
    } rows[] = {{10000, 8}, {16384, 8}, {17000, 48}, {131072, 24}};
    for (size_t i = 0; i < 3 * 4 * 2; i++) {
        const char *dtype = i & 1 ? "bf16" : "f32";
        int n = rows[i / 2 % 4].length;
        char source[512];
        snprintf(source, sizeof source,
                 "graph g(x: %s[512, %d], z: %s[512, %d], a: %s[%d], b: %s[%d]) -> (y: %s[512, %d])"
                 " {\n  fuse must { y = %s }\n}\n",
                 dtype, n, dtype, n, dtype, n, dtype, n, dtype, n, bodies[i / 8]);
        Compiled p = compiled_new(source, TARGET_SM_90A);
        cr_expect_leq(spilled_bytes(&p), rows[i / 2 % 4].most, "%s", source);
        compile_free(&p);
    }
}

/* A part that cuts an access is stored from what all lanes have, by those rows that exist: what is
 * computed for it in the branch around that, later stages compute for themselves. (LLVM's verifier
 * finds it if they do not.) */
Test(gpu_row, slices_that_early_stages_store_leave_nothing_to_later_ones) {
    static const struct {
        const char *rows, *columns;
    } shapes[] = {{"8", "24"}, {"B", "24"}, {"B", "100"}, {"B", "1024"}};
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_86, TARGET_SM_90A};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 3; i++) {
        char source[512];
        const char *m = shapes[i / 3].rows, *n = shapes[i / 3].columns;
        snprintf(source, sizeof source,
                 "dim B in 1..4096\n"
                 "graph g(t: f32[%s, %s]) -> (b: f32[%s, %s - 1], d: f32[%s, %s]) {\n"
                 "  fuse must {\n    c = t * sum(t, axis=1, keep=true)\n    e = softmax(t)\n"
                 "    b = c[..., 1:]\n    d = e * c\n  }\n}\n",
                 m, n, m, n, m, n);
        Compiled p = compiled_new(source, targets[i % 3]);
        cr_expect_eq(p.plan->kernels.n, 1, "%s", source);
        compile_free(&p);
    }
}
