/* Judging values: differences in bits, ULPs, words, and the nodes of a run against the reference.
 */
#include "verify/verify.h"
#include "verify/verify_fast.h"

#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

static Arena *arena;

static void set_up(void) {
    arena = arena_new(NULL);
}

static void tear_down(void) {
    arena_free(arena);
}

TestSuite(verify, .init = set_up, .fini = tear_down);

Test(verify, bits_differ_but_for_the_payload_of_nans) {
    float a[] = {1, -0.0f, NAN, 4}, b[] = {1, -0.0f, -NAN, 4};
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
    cr_expect_eq(verify_bits(DT_F32, x, y, sizeof a), -1);
    b[1] = 0;
    cr_expect_eq(verify_bits(DT_F32, x, y, sizeof a), 1);
    cr_expect_eq(verify_bits(DT_F32, x, y, 4), -1);
    b[1] = -0.0f;
    b[2] = 7;
    cr_expect_eq(verify_bits(DT_F32, x, y, sizeof a), 2);
    cr_expect_eq(verify_bits(DT_I32, x, y, 0), -1);
}

static const char *description(Tensor type, int64_t element, double actual, double expected) {
    Text out = {.arena = arena};
    verify_describe(&type, element, actual, expected, &out);
    return text_str(&out);
}

Test(verify, differences_have_coordinates_and_distances) {
    Tensor type = {.dtype = DT_F32, .rank = 3, .dims = {2, 3, 5}};
    cr_expect_str_eq(description(type, 22, 1.5, 1.25),
                     "element 22 of f32[2, 3, 5] at [1, 1, 2] is 1.5, not 1.25 (2097152 ULP)");
    cr_expect_str_eq(description(type, 0, -0.0, 0.0),
                     "element 0 of f32[2, 3, 5] at [0, 0, 0] is -0, not 0 (the sign of zero)");
    cr_expect_str_eq(description(type, 29, NAN, 3),
                     "element 29 of f32[2, 3, 5] at [1, 2, 4] is nan, not 3");
    cr_expect_str_eq(description((Tensor){.dtype = DT_I32}, 0, 3, 4),
                     "element 0 of i32[] is 3, not 4");
}

/* x = 1, 2, 3; y = x + x */
Test(verify, a_node_out_of_its_bound_is_named_with_its_kernel) {
    const Module *module =
        plans_parse(arena, "graph g(x: f32[3]) -> (y: f32[3]) {\n  y = x + x\n}\n");
    const Plan *plan = plans_fuse(arena, module, 0, true);
    float x[] = {1, 2, 3}, y[] = {2, 4, 6};
    const uint8_t *bytes[2] = {(const uint8_t *)x, (const uint8_t *)y};
    Arena *scratch = arena_new(NULL);
    VerifyCounts counts = {0};
    Text report = {.arena = arena};
    cr_assert_eq(module->graphs.data[0]->nodes.n, 2);
    cr_expect(verify_nodes(plan, NULL, bytes, scratch, &counts, &report));
    cr_expect(counts.n_nodes == 1 && counts.n_elems == 3 && counts.n_skipped == 0);
    y[2] = 6.5f;
    cr_expect(!verify_nodes(plan, NULL, bytes, scratch, &counts, &report));
    cr_expect_str_eq(
        text_str(&report),
        "`add` that makes `y`, line 2, kernel g_0_y_l2: 1 of 3 elements are out of the "
        "bound; element 2 of f32[3] at [2] is 6.5, not 6 (1048576 ULP), the bound 0\n");
    arena_free(scratch);
}

/* Scores of f32 in place of those of bf16, which differ by roundings; then another power. */
Test(verify, a_rewritten_graph_is_held_to_the_graph_as_it_is_written) {
    static const char header[] = "graph g(x: bf16[4, 40], v: bf16[40, 8]) -> (y: bf16[4, 8]) {\n";
    static const struct {
        const char *body;
        bool is_right;
    } cases[] = {{"y = softmax_matmul(cast(x, f32), v)", true},
                 {"y = softmax2_matmul(cast(x, f32), v)", false}};
    uint16_t x[4 * 40], v[40 * 8];
    for (int i = 0; i < 4 * 40; i++) x[i] = (uint16_t)(0x3E00 + 64 * (i * 7 % 11) + i % 3);
    for (int i = 0; i < 40 * 8; i++) v[i] = (uint16_t)((i % 2 << 15) + 0x3F00 + i * 5 % 200);
    const uint8_t *bytes[16] = {(const uint8_t *)x, (const uint8_t *)v};
    const char *error = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FastReference written, made;
        VerifyCounts counts = {0};
        Text report = {.arena = arena};
        const char *as_written = str_format(arena, "%s  y = softmax(x) @ v\n}\n", header);
        const char *rewritten = str_format(arena, "%s  %s\n}\n", header, cases[i].body);
        cr_assert(verify_fast_reference(plans_parse(arena, as_written)->graphs.data[0], NULL, bytes,
                                        arena, &written, &error),
                  "%s", error);
        cr_assert(verify_fast_reference(plans_parse(arena, rewritten)->graphs.data[0], NULL, bytes,
                                        arena, &made, &error),
                  "%s", error);
        cr_expect_eq(verify_rewritten(&made, &written, &counts, &report), cases[i].is_right, "%s",
                     text_str(&report));
        cr_expect(counts.n_elems == 4 * 8 && counts.n_any == 0);
        if (!cases[i].is_right)
            cr_expect(strstr(report.data, "`softmax2_matmul` that makes `y`, line 2, rewritten: "),
                      "%s", text_str(&report));
    }
}
