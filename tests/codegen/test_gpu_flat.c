/* Maps whose rows are no whole vectors: which have vectors over all elements in order, what these
 * are made of, and what they are thought to take. Results are checked where there is a GPU, or an
 * emulator of one, by random shapes (template map-flat). */
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

#define DIMS "dim N in 0..1048576\ndim M in 1..1024\n"
#define ROWS(shape, bias, type)                                               \
    "graph g(x: " type shape ", b: " type bias ") -> (y: " type shape ") {\n" \
    "  y = relu(x + b)\n}\n"

static const struct {
    const char *source;
    uint32_t n_variants, flat; /* the flat variant's number */
    uint32_t lanes;            /* its; 0: there is none */
} programs[] = {
    {ROWS("[134217727]", "[134217727]", "bf16"), 2, 0, 8},
    {ROWS("[1001, 33]", "[1001, 33]", "f32"), 2, 0, 4},
    {ROWS("[1001, 3]", "[1001, 3]", "f64"), 2, 0, 2},
    {ROWS("[1001, 7]", "[1001, 7]", "i32"), 2, 0, 4},
    {ROWS("[16384, 8191]", "[8191]", "bf16"), 2, 0, 8},
    {ROWS("[16384, 8191]", "[16384, 1]", "f32"), 2, 0, 4},
    {ROWS("[9, 64, 8191]", "[64, 1]", "f16"), 2, 0, 8},
    {DIMS ROWS("[N]", "[N]", "bf16"), 2, 0, 8},
    {DIMS ROWS("[N, M]", "[N, M]", "bf16"), 2, 0, 8},
    /* A row's own vectors know where they are. */
    {DIMS ROWS("[N, M]", "[M]", "bf16"), 3, 1, 8},
    {ROWS("[16384, 8192]", "[16384, 8192]", "bf16"), 2, 0, 0},
    {ROWS("[16384, 8196]", "[8196]", "bf16"), 2, 0, 0},
    {ROWS("[16384, 8190]", "[8190]", "bf16"), 2, 0, 8},
    /* From any element on, of which only the store is aligned then. */
    {"graph g(x: f32[34, 31]) -> (y: f32[33, 31]) {\n  y = relu(x[1:])\n}\n", 2, 0, 4},
    /* What is not in order is more, or is stored, or lies across. */
    {"graph g(x: f32[1000, 33], y: f32[1000, 33]) -> (z: f32[1000, 32]) {\n"
     "  z = x[:, 1:] + x[:, :-1] * y[:, 1:]\n}\n",
     2, 0, 0},
    {"graph g(x: f32[1000, 33]) -> (y: f32[1000, 66]) {\n  y = concat([x, relu(x)], axis=1)\n}\n",
     1, 0, 0},
    {"graph g(x: f32[33, 1001]) -> (y: f32[1001, 33]) {\n  y = relu(transpose(x))\n}\n", 1, 0, 0}};

Test(gpu_flat, rows_that_are_no_whole_vectors_are_taken_together) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        Compiled c = compiled_new(programs[i].source, TARGET_SM_90A);
        const Kernel *kernel = &c.plan->kernels.data[c.plan->kernels.n - 1];
        const Variant *variant = &kernel->variants[programs[i].flat];
        uint32_t lanes =
            variant->sched.template == TEMPLATE_GPU_MAP_FLAT ? variant->sched.lanes : 0;
        cr_expect_eq(lanes, programs[i].lanes, "%s%u lanes", programs[i].source, lanes);
        if (programs[i].lanes)
            cr_expect_eq(kernel->n_variants, programs[i].n_variants, "%s%u variants",
                         programs[i].source, kernel->n_variants);
        for (uint32_t v = 0; v < kernel->n_variants && !programs[i].lanes; v++)
            cr_expect(kernel->variants[v].sched.template != TEMPLATE_GPU_MAP_FLAT, "%s",
                      programs[i].source);
        cr_expect_eq(predicate_dim(&variant->predicate, TERM_MULTIPLE), DIM_NONE, "%s",
                     programs[i].source);
        cr_expect(compiled_is_in_registers(&c), "%s", programs[i].source);
        compile_free(&c);
    }
}

/* Vectors ask for aligned pointers and for nothing else, and leave their tail to threads of its
 * own: no thread goes over elements in a loop. */
Test(gpu_flat, a_vector_is_one_access_whatever_the_extents_are) {
    Compiled c = compiled_new(DIMS ROWS("[N, M]", "[N, M]", "bf16"), TARGET_SM_90A);
    const Kernel *kernel = &c.plan->kernels.data[0];
    const char *text = compiled_function(&c, kernel, 0);
    cr_expect_eq(ptx_count(text, ".v4.b32 {"), 2, "%s", text); /* loads */
    cr_expect_eq(ptx_count(text, "st.global.v4.b32 ["), 1, "%s", text);
    cr_expect_eq(ptx_count(text, "ld.global.b16") + ptx_count(text, "ld.global.nc.b16"), 2);
    cr_expect_eq(ptx_count(text, "rem.") + ptx_count(text, "div."), 0, "%s", text);
    cr_expect(strstr(c.bytes, " 256 0 a0:16&a1:16&a2:16"), "%.900s", c.bytes);
    compile_free(&c);
}

/* Coordinates are found by one division for each axis, and counted on from there. */
Test(gpu_flat, coordinates_are_carried_from_lane_to_lane) {
    Compiled c = compiled_new(DIMS ROWS("[N, 33, M]", "[33, 1]", "f32"), TARGET_SM_90A);
    const char *text = compiled_function(&c, &c.plan->kernels.data[0], 0);
    const char *tail = strstr(text, "st.global.v4");
    cr_assert(tail);
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "div.u")) && at < tail; at++) n++;
    cr_expect_leq(n, 2, "%zu divisions before\n%s", n, text);
    compile_free(&c);
}

/* Microseconds on an H200: a stream at the rate of memory; and what takes an element a thread. */
static const struct {
    const char *source;
    double flat_us, scalar_us;
} prices[] = {{ROWS("[134217727]", "[134217727]", "bf16"), 185, 392},
              {ROWS("[16384, 8191]", "[8191]", "bf16"), 127, 365},
              {ROWS("[16384, 8191]", "[8191]", "f32"), 247, 411}};

static double price_of(Arena *arena, const char *source, bool is_scalar) {
    Module *module = plans_parse(arena, source);
    const Card *card = card_get(CARD_H200);
    PricedPlan p = plans_price(arena, module, 0, false, TARGET_SM_90A, card, NULL);
    Kernel *kernel = &p.plan->kernels.data[0];
    if (is_scalar) {
        kernel->variants[0] = kernel->variants[kernel->n_variants - 1];
        kernel->n_variants = 1;
    }
    return cost_us(arena, p.plan, card, NULL);
}

Test(gpu_flat, prices_are_what_was_measured) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        for (int is_scalar = 0; is_scalar < 2; is_scalar++) {
            double wanted = is_scalar ? prices[i].scalar_us : prices[i].flat_us;
            double us = price_of(arena, prices[i].source, is_scalar);
            cr_expect(us >= 0.95 * wanted && us <= 1.05 * wanted, "%s%.0f us, not %.0f",
                      prices[i].source, us, wanted);
        }
    }
    arena_free(arena);
}
