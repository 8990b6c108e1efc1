/* Column reductions of GPUs: how many rows a thread visits side by side. */
#include "lib/compiled.h"

#include <criterion/criterion.h>

typedef struct Rows {
    const char *source;
    uint32_t at_once; /* of the first variant of the first kernel */
} Rows;

static const Rows choices[] = {
    {"graph g(x: f32[200, 512]) -> (y: f32[200, 512]) { y = softmax(x, axis=0) }", 4},
    {"graph g(x: f32[25, 512]) -> (y: f32[25, 512]) { y = softmax(x, axis=0) }", 4},
    /* No chain of eight has four of these rows. */
    {"graph g(x: f32[24, 512]) -> (y: f32[24, 512]) { y = softmax(x, axis=0) }", 1},
    {"graph g(x: f32[8, 8]) -> (y: f32[8]) { y = sum(x, axis=0) }", 1},
    /* Four rows of four such columns are long code, of which each pass has a copy. */
    {"graph g(x: f32[32, 64]) -> (y: f32[32, 64]) {\n"
     "  y = loop i in 0:6 with h = x { return gelu(softmax(h * x, axis=0)) } }",
     1},
};

Test(columns, rows_are_visited_side_by_side_where_they_are_many_and_short) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        Compiled c = compiled_new(choices[i].source, TARGET_SM_90A);
        const Sched *s = &c.driver.plans[0]->kernels.data[0].variants[0].sched;
        cr_expect_eq(s->template, TEMPLATE_GPU_COLUMN, "%s", choices[i].source);
        cr_expect_eq(s->unroll, choices[i].at_once, "%s: %u", choices[i].source, s->unroll);
        compile_free(&c);
    }
}
