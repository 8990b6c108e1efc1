/* Loops whose number of steps is a dim, in a graph: what of them is refused. */
#include "ir/build/build.h"
#include "ir/loop.h"

#include <criterion/criterion.h>

typedef struct World {
    Arena *arena;
    Builder *b;
    DimId steps;
} World;

static World world_new(void) {
    World w = {.arena = arena_new(NULL)};
    const Source *source = source_new(w.arena, "none", "", 0);
    w.b = build_new(w.arena, dimtab_new(w.arena), source, "g");
    w.steps = build_dim(w.b, "T", 1, 64, 1);
    return w;
}

static NodeId exp_of(const World *w, NodeId x) {
    const Operand operand = operand_tensor(x);
    return build_eltwise(w->b, OP_EXP, 1, &operand);
}

static NodeId sum_of(const World *w, NodeId x, NodeId y) {
    const Operand operands[2] = {operand_tensor(x), operand_tensor(y)};
    return build_eltwise(w->b, OP_ADD, 2, operands);
}

/* The loops of [8]: h and k are carried by them, and hold `next`. */
static const char *loop_problem(World *w, const char *what) {
    NodeId x = build_input(w->b, "x", DT_F32, (DimList){1, &w->steps});
    NodeId h = build_loop_carry(w->b, x), k = build_loop_carry(w->b, x), next = exp_of(w, h);
    NodeId y = build_loop_result(w->b, 1, &h, &next, w->steps, 0);
    if (strcmp(what, "alone") == 0) build_output(w->b, "z", exp_of(w, k), 0);
    if (strcmp(what, "inside") == 0) build_output(w->b, "z", next, 0);
    if (strcmp(what, "mixed") == 0) {
        NodeId both = sum_of(w, next, k);
        build_output(w->b, "z", build_loop_result(w->b, 1, &k, &both, w->steps, 0), 0);
    }
    if (strcmp(what, "shared") == 0)
        build_output(w->b, "z", build_loop_result(w->b, 1, &h, &next, dim_const(w->b->dims, 3), 0),
                     0);
    if (strcmp(what, "nested") == 0) {
        NodeId inner = build_loop_carry(w->b, h), deep = exp_of(w, inner);
        deep = build_loop_result(w->b, 1, &inner, &deep, w->steps, 0);
        NodeId pair[2] = {h, k}, then[2] = {deep, deep};
        y = build_loop_result(w->b, 2, pair, then, w->steps, 1);
    }
    build_output(w->b, "y", y, 0);
    BuildError error;
    return build_finish(w->b) ? NULL : build_take_error(w->b, &error) ? error.message : "";
}

Test(loop, values_of_a_loop_are_for_its_steps_alone) {
    static const char *const wrong[][2] = {
        {"alone", "a loop_carry is of no loop_result"},
        {"inside", "a value of a loop's step is an output"},
        {"mixed", "a loop has a value of another one"},
        {"shared", "two loops have one loop_carry"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        World w = world_new();
        const char *problem = loop_problem(&w, wrong[i][0]);
        cr_expect_str_eq(problem ? problem : "none", wrong[i][1]);
        arena_free(w.arena);
    }
    static const char *const right[] = {"right", "nested"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        World w = world_new();
        cr_expect_null(loop_problem(&w, right[i]), "%s", right[i]);
        arena_free(w.arena);
    }
}
