/* Taps: every value of a plan can be stored somewhere, and nothing else moves for it. */
#include "verify/probe.h"

#include "lib/plans.h"
#include "memory/memplan.h"
#include "plan/launch.h"
#include "plan/in_place.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct World {
    Arena *arena, *scratch;
    const Module *module;
} World;

static World world_new(const char *source) {
    World w = {.arena = arena_new(NULL), .scratch = arena_new(NULL)};
    w.module = plans_parse(w.arena, source);
    return w;
}

static void world_free(World *w) {
    arena_free(w->arena);
    arena_free(w->scratch);
}

static Plan *fused(World *w) {
    Plan *plan = plans_fuse(w->arena, w->module, 0, false);
    return plan;
}

/* One probe for each trace, in the first kernel that has a place for it; none for what is idle. */
static uint32_t probe_all(World *w, const Plan *plan, Probe *probes, uint32_t max) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        bool is_first = true;
        for (uint32_t j = 0; j < k; j++)
            is_first = is_first && plan->kernels.data[j].traces.data != kernel->traces.data;
        for (uint32_t t = 0; is_first && t < kernel->traces.n && n < max; t++) {
            bool is_placed = false, is_idle = true;
            for (uint32_t j = k; j < plan->kernels.n && !is_placed; j++) {
                if (plan->kernels.data[j].traces.data != kernel->traces.data) continue;
                is_placed = probe_place(w->arena, plan, j, t, &probes[n]);
                is_idle = is_idle && probe_is_idle(w->arena, &plan->kernels.data[j], t);
            }
            cr_expect(is_placed != is_idle, "kernel %s, trace %u", kernel->name, t);
            n += is_placed;
        }
    }
    return n;
}

/* Of `b`: the kernels that may store over it while they read it. */
static uint32_t count_in_place(World *w, const Plan *plan, uint32_t b) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const bool *may = in_place_find(w->scratch, plan, kernel);
        for (uint32_t i = 0; i < kernel->args.n; i++) n += may[i] && kernel->args.data[i] == b;
    }
    return n;
}

/* Whether a kernel stores over what it reads in the plain plan alone: a probe of several passes may
 * read it again. */
static bool stops_in_place(World *w, const Plan *plain, const Plan *probed, const char *source) {
    bool is_less = false;
    for (uint32_t b = 0; b < plain->buffers.n; b++) {
        uint32_t n = count_in_place(w, plain, b), n_probed = count_in_place(w, probed, b);
        cr_expect(n_probed <= n, "a probe lets %s be stored over\n%s", plain->buffers.data[b].name,
                  source);
        is_less = is_less || n_probed < n;
    }
    return is_less;
}

/* Taps change which outputs there are, and nothing in the workspace, but for where a kernel then
 * reads again what it stored over. Returns whether one does. */
static bool check_source(const char *source) {
    enum { MAX = 400 };
    static Probe probes[MAX];
    World w = world_new(source);
    Plan *plain = fused(&w), *probed = fused(&w);
    uint32_t n = probe_all(&w, probed, probes, MAX), n_apart = 0, n_outputs = 0, n_copies = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_apart += probes[i].is_own_map;
        n_outputs += probes[i].scalars.n;
        if (probed->kernels.data[probes[i].kernel].is_init) n_copies += probes[i].scalars.n;
    }
    probe_store(w.arena, probed, probes, n);
    const char *fault = plan_verify(probed, w.scratch);
    cr_expect(!fault, "%s\n%s", fault, source);
    cr_expect(probed->kernels.n == plain->kernels.n + n_apart + n_copies);
    cr_expect(probed->buffers.n == plain->buffers.n + n_outputs + n_copies);
    plan_launch_singly(w.arena, plain);
    plan_launch_singly(w.arena, probed);
    cr_assert(memplan_place(w.arena, plain) && memplan_place(w.arena, probed));
    cr_expect(probed->peak_bytes_unshared == plain->peak_bytes_unshared, "%s", source);
    bool may_move = stops_in_place(&w, plain, probed, source);
    cr_expect(may_move || probed->workspace.n == plain->workspace.n, "%s", source);
    for (uint32_t i = 0; i < plain->workspace.n && !may_move; i++)
        cr_expect(probed->workspace.data[i] == plain->workspace.data[i], "%s", source);
    for (uint32_t i = 0; i < plain->buffers.n && !may_move; i++)
        cr_expect(probed->buffers.data[i].offset_bytes == plain->buffers.data[i].offset_bytes,
                  "%s has moved\n%s", plain->buffers.data[i].name, source);
    world_free(&w);
    return may_move;
}

Test(probe, nothing_moves_in_random_programs, .timeout = 60) {
    RandomGraphOptions options = random_graph_defaults();
    uint32_t n_moved = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        Arena *arena = arena_new(NULL);
        n_moved += check_source(random_graph_source(arena, seed, &options));
        arena_free(arena);
    }
    /* Some where rows are drawn beside what they are made of (lib/random_again.c). */
    cr_expect_leq(n_moved, 15, "in %u something may move", n_moved);
}

static const char attention[] =
    "dim B in 1..64\n"
    "graph g(x: f32[B, 16], w: f32[16, 16], v: f32[16, 16], i: i32[B]) -> (z: f32[B, 16]) {\n"
    "  p = x @ transpose(w, perm=[1, 0])\n"
    "  q = x @ v\n"
    "  z = gather(softmax(p @ transpose(q, perm=[1, 0]), axis=1) @ q, i) + p\n"
    "}\n";

Test(probe, operands_of_matmuls_have_maps_of_their_own) {
    static Probe probes[100];
    World w = world_new("graph g(x: f32[8, 16], y: f32[4, 16]) -> (z: f32[8, 4]) {\n"
                        "  z = x @ transpose(y, perm=[1, 0])\n}\n");
    Plan *plan = fused(&w);
    uint32_t n = probe_all(&w, plan, probes, 100), n_apart = 0;
    cr_assert_eq(plan->kernels.n, 1);
    probe_store(w.arena, plan, probes, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!probes[i].is_own_map) continue;
        cr_expect_eq(probes[i].n_axes, 2, "of three loops two");
        n_apart++;
    }
    cr_expect_eq(n_apart, 3, "x, y and y transposed");
    for (uint32_t k = 0; k < 3; k++) {
        cr_expect(plan->kernels.data[k].form == FORM_MAP);
        cr_expect_eq(plan->kernels.data[k].n_parallel, 2);
    }
    cr_expect(plan->kernels.data[3].form == FORM_GEMM);
    world_free(&w);
}

/* Where a probe lies is told by what it is read through: a gather's indices come with it. */
Test(probe, gathered_indices_are_stored_too) {
    static Probe probes[100];
    World w = world_new("graph g(x: f32[8, 16], i: i32[4]) -> (z: f32[4, 16]) {\n"
                        "  z = exp(gather(exp(x), i, axis=0))\n}\n");
    Plan *plan = fused(&w);
    uint32_t n = probe_all(&w, plan, probes, 100), n_two = 0;
    for (uint32_t i = 0; i < n; i++) n_two += probes[i].scalars.n == 2;
    cr_expect_eq(n_two, 2, "exp(x) and x");
    probe_store(w.arena, plan, probes, n);
    cr_expect(!plan_verify(plan, w.scratch));
    world_free(&w);
}

/* A long sum is split: what it sums is stored by the part over elements, the rest by the other. */
Test(probe, both_kernels_of_a_split_reduction_have_probes) {
    static Probe probes[100];
    World w = world_new("graph g(x: f32[4, 40000]) -> (z: f32[4]) {\n"
                        "  z = sum(abs(x), axis=[1]) * 0.5\n}\n");
    Plan *plan = fused(&w);
    uint32_t n = probe_all(&w, plan, probes, 100);
    cr_assert_eq(plan->kernels.n, 2);
    for (uint32_t i = 0; i < n; i++) {
        NodeId node = plan->kernels.data[0].traces.data[probes[i].trace].node;
        OpId op = graph_node(plan->graph, node)->op;
        bool is_inner = op == OP_ABS || op == OP_INPUT;
        if (op != OP_CONST) cr_expect_eq(probes[i].kernel, is_inner ? 0 : 1);
        cr_expect_eq(probes[i].is_row, !is_inner);
    }
    world_free(&w);
}

/* Composition sees that it does not matter which column of this iota a run chooses, so sums of it
 * are prepared. The choice is made too late for a probe there; that of the iota does without. */
Test(probe, nothing_is_read_that_no_value_hangs_on) {
    static Probe probes[100];
    World w =
        world_new("graph g(y: f32[]) -> (o: f32[4, 2], p: f32[]) {\n"
                  "  b = cast(softplus(y), i32)\n"
                  "  c = cast(gather(iota([4, 4, 8], axis=0), b, axis=2), f32)\n"
                  "  o = pad(sum(c, axis=[1], keep=true), low=[0, 0], high=[0, 1], value=2.0)\n"
                  "  p = cast(b, f32)\n}\n");
    Plan *plan = fused(&w);
    const Kernel *sums = &plan->kernels.data[0];
    cr_assert(sums->is_init && sums->form == FORM_ROW);
    uint32_t n_idle = 0;
    for (uint32_t t = 0; t < sums->traces.n; t++) n_idle += probe_is_idle(w.arena, sums, t);
    cr_expect_eq(n_idle, 1, "of %u the choice", sums->traces.n);
    uint32_t n = probe_all(&w, plan, probes, 100);
    probe_store(w.arena, plan, probes, n);
    const char *fault = plan_verify(plan, w.scratch);
    cr_expect(!fault, "%s", fault);
    world_free(&w);
}

Test(probe, nothing_moves_in_an_attention) {
    cr_expect_not(check_source(attention));
}
