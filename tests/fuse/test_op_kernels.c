/* Without fusion, kernels of like ops are copies: which ops are like, and that a copy accesses
 * buffers of its own. */
#include "lib/plans.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char source[] =
    "graph g(x: f32[8], y: f32[8], k: f16[8]) -> (out: f32[8]) {\n"
    "  a = x * y\n  b = y * x\n  c = x * x\n  d = x * 0.5\n  e = x * 2.0\n"
    "  f = a * b\n  h = c * d\n  i = f * f\n  j = cast(k, f32)\n"
    "  m = cast(h, f16)\n  n = cast(i, f16)\n  o = 0.5 * e\n  p = e * 0.5\n"
    "  q = a * 0.5\n  out = sum(x, keep=true) + j + cast(m, f32) + cast(n, f32) + o "
    "+ p + q\n}\n";

static Plan *plan_unfused(Arena *arena) {
    Diags diags = {.arena = arena};
    const Graph *graph = plans_parse(arena, source)->graphs.data[0];
    Plan *plan = plans_fuse_with(arena, graph, (FuseOptions){.off = true}, &diags);
    sched_plan(arena, plan, target_get(TARGET_SM_80));
    return plan;
}

static const Kernel *kernel_of(const Plan *plan, const char *name) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const Node *node = graph_node(plan->graph, kernel->nodes.data[kernel->nodes.n - 1]);
        if (node->name && strcmp(node->name, name) == 0) return kernel;
    }
    cr_assert_fail("%s", name);
    return NULL;
}

Test(op_kernels, ops_are_alike_if_they_differ_in_their_buffers_alone) {
    static const struct {
        const char *one, *other;
        bool are_alike;
    } pairs[] = {
        {"a", "b", true},  /* other inputs */
        {"a", "c", false}, /* one input twice */
        {"d", "e", false}, /* another literal */
        {"a", "f", false}, /* the artifact's own memory */
        {"f", "h", true},  /* temporaries */
        {"f", "i", false}, /* one temporary twice */
        {"a", "j", false}, /* another op */
        {"m", "n", true},  /* casts */
        {"j", "m", false}, /* another dtype */
        {"o", "p", false}, /* the literal on the other side */
        {"p", "q", true},  /* the same literal */
    };
    Arena *arena = arena_new(NULL);
    const Plan *plan = plan_unfused(arena);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const Kernel *one = kernel_of(plan, pairs[i].one), *other = kernel_of(plan, pairs[i].other);
        cr_expect(one->program && other->program, "%s, %s", pairs[i].one, pairs[i].other);
        cr_expect_eq(one->program == other->program, pairs[i].are_alike, "%s, %s", pairs[i].one,
                     pairs[i].other);
    }
    arena_free(arena);
}

/* Every kernel of an op by itself loads what the op reads and stores the op. */
Test(op_kernels, a_copy_has_its_own_buffers_nodes_and_names) {
    Arena *arena = arena_new(NULL);
    const Plan *plan = plan_unfused(arena);
    uint32_t n_checked = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const Store *store = &kernel->stages.data[0].stores.data[0];
        if (!kernel->program) continue;
        n_checked++;
        const Node *node = graph_node(plan->graph, store->node);
        cr_expect_eq(kernel->nodes.data[kernel->nodes.n - 1], store->node);
        cr_expect_eq(plan->buffers.data[store->buffer].node, store->node);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
            const Scalar *s = scalar_get(kernel->scalars, id);
            if (s->kind != SCALAR_LOAD) continue;
            NodeId loaded = plan->buffers.data[s->buffer].node;
            cr_expect(loaded == node->args[0] || loaded == node->args[1], "%s loads another value",
                      kernel->name);
            cr_expect_neq(kernel_find_arg(kernel, s->buffer), NO_ARG);
        }
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            cr_expect(strstr(kernel->variants[v].symbol, kernel->name), "%s: %s", kernel->name,
                      kernel->variants[v].symbol);
    }
    cr_expect_geq(n_checked, 14);
    arena_free(arena);
}
