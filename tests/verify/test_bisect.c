/* The search for what is wrong in programs of linked launches, on runs that are made up: every
 * value is zero but those that a test says are one. */
#include "verify/bisect.h"

#include "launch/dedup.h"
#include "launch/compose.h"
#include "lib/plans.h"
#include "memory/memplan.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <string.h>

enum { N_ELEMS = 64 * 64, N_NODES = 16 };

typedef struct World {
    Arena *arena, *scratch;
    const Module *module;
    Plan *plan;        /* of the program that is wrong, just fused */
    Plan *linked;      /* the same, as lowered */
    const char *wrong; /* the value that is wrong where it is read */
    bool is_gone;      /* with that value in memory of its own */
    bool is_hidden;    /* with any probes */
    uint32_t n_trials;
} World;

static const float zeros[N_ELEMS], ones[N_ELEMS] = {1};

static Plan *fused(World *w) {
    Plan *plan = plans_fuse(w->arena, w->module, 0, false);
    return plan;
}

static void link_kernels(World *w, Plan *plan) {
    const Plan *plans[] = {plan};
    sched_plan(w->arena, plan, target_get(TARGET_SM_80));
    plans_compose(w->arena, plan, TARGET_SM_80, LAUNCH_MODES_OF_GEMMS);
    dedup_classify(w->scratch, false, plans, 1);
    plans_compose(w->arena, plan, TARGET_SM_80, LAUNCH_MODES_BESIDE);
    cr_assert(memplan_place(w->arena, plan));
}

static World world_new(const char *source) {
    World w = {.arena = arena_new(NULL), .scratch = arena_new(NULL)};
    w.module = plans_parse(w.arena, source);
    w.linked = fused(&w);
    w.plan = fused(&w);
    link_kernels(&w, w.linked);
    return w;
}

static void world_free(World *w) {
    arena_free(w->arena);
    arena_free(w->scratch);
}

/* The value itself, where it is read, and what is made of it there. */
static bool is_wrong(const World *w, const Kernel *kernel, uint32_t trace) {
    const Trace *at = &kernel->traces.data[trace];
    const char *name = graph_node(w->plan->graph, at->node)->name;
    if (at->is_loaded) return name && strcmp(name, w->wrong) == 0;
    for (uint32_t i = 0; i < at->operands.n; i++)
        if (is_wrong(w, kernel, at->operands.data[i])) return true;
    return false;
}

/* Taps go into a plan that is made anew, and must leave one that can be compiled. */
static bool run(void *user, BisectTrial *trial) {
    World *w = user;
    Plan *plan = fused(w);
    bisect_apply(trial, w->arena, plan);
    const char *fault = plan_verify(plan, w->scratch);
    cr_expect(!fault, "%s", fault);
    link_kernels(w, plan);
    trial->bytes = arena_array(w->arena, const uint8_t *const *, trial->n_probes);
    for (uint32_t i = 0; i < trial->n_probes; i++) {
        const Probe *probe = &trial->probes[i];
        const uint8_t **bytes = arena_array(w->arena, const uint8_t *, probe->scalars.n);
        bool is_right = w->is_hidden ||
                        !is_wrong(w, &w->plan->kernels.data[probe->kernel], probe->trace) ||
                        (w->is_gone && trial->shown != UINT32_MAX);
        bytes[0] = (const uint8_t *)(is_right ? zeros : ones);
        trial->bytes[i] = bytes;
    }
    trial->shown_bytes = (const uint8_t *)zeros;
    trial->is_wrong = !w->is_hidden;
    w->n_trials++;
    return true;
}

static BisectVerdict find(World *w, const char *output) {
    static const uint8_t *expected[N_NODES];
    static const int64_t dims[1] = {0};
    Bisect bisect = {
        .plan = w->plan, .placed = w->linked, .symbol_values = dims, .arena = w->arena};
    cr_assert(w->plan->graph->nodes.n <= N_NODES);
    for (uint32_t i = 0; i < N_NODES; i++) expected[i] = (const uint8_t *)zeros;
    bisect.expected = expected;
    bisect.run = run;
    bisect.user = w;
    while (strcmp(w->plan->buffers.data[bisect.buffer].name, output) != 0) bisect.buffer++;
    return bisect_find(&bisect);
}

static const char gated[] =
    "graph g(x: f32[64, 32], w: f32[32, 48], y: f32[32, 48]) -> (z: f32[64, 48]) {\n"
    "  u = x @ w\n  v = x @ y\n  z = u * v\n}\n";

Test(bisect, a_value_lost_in_shared_memory_has_its_own_verdict) {
    World w = world_new(gated);
    w.wrong = "u";
    w.is_gone = true;
    cr_assert(w.plan->kernels.n == 2 && w.linked->launches.data[0].mode == LAUNCH_SEQUENCE);
    BisectVerdict verdict = find(&w, "z");
    cr_expect_eq(verdict.kind, BISECT_SMEM, "%s", verdict.text);
    cr_expect_str_eq(verdict.text,
                     "  first wrong: `matmul` that makes `u`, line 2: its value is right in kernel "
                     "g_0_u_l2, but lost in shared memory before kernel g_1_z_l4, in the same "
                     "launch, reads it\n");
    world_free(&w);
}

/* A kernel stores what it makes over what it reads, too early; probes, which load that before, see
 * nothing of it. */
Test(bisect, what_its_own_reader_overwrites_is_named) {
    World w = world_new("graph g(x: f32[64, 64]) -> (z: f32[64, 64], c: f32[64, 64]) {\n"
                        "  fuse never { a = abs(x) }\n"
                        "  fuse must {\n    b = x - max(x, axis=1, keep=true)\n    c = a * x + b\n"
                        "  }\n  fuse never { z = b * c }\n}\n");
    w.wrong = "a";
    w.is_hidden = true;
    BisectVerdict verdict = find(&w, "c");
    cr_expect_eq(verdict.kind, BISECT_SCHEDULE, "%s", verdict.text);
    for (uint32_t i = 0; i < w.linked->buffers.n; i++)
        w.linked->buffers.data[i].offset_bytes = dim_const(w.linked->graph->dims, 0);
    verdict = find(&w, "c");
    cr_expect_eq(verdict.kind, BISECT_OVERLAP, "%s", verdict.text);
    cr_expect(strstr(verdict.text, "`abs` that makes `a`, line 2: its value is right in kernel "),
              "%s", verdict.text);
    world_free(&w);
}

/* Nobody waits for what runs beside it. */
Test(bisect, kernels_of_a_parallel_launch_do_not_wait_for_each_other) {
    World w = world_new(gated);
    w.wrong = "u";
    w.linked->launches.data[0].mode = LAUNCH_PARALLEL;
    BisectVerdict verdict = find(&w, "z");
    cr_expect_eq(verdict.kind, BISECT_ORDER, "%s", verdict.text);
    cr_expect(strstr(verdict.text, "but kernel g_1_z_l4 reads it before that"), "%s", verdict.text);
    world_free(&w);
}

/* Launches move kernels: what a probe is of is not where it was in the fused plan. */
Test(bisect, kernels_that_launches_moved_are_found) {
    World w = world_new("graph g(x: f32[64, 32], y: f32[64, 32])"
                        " -> (p: f32[64], q: f32[32], r: f32[64]) {\n"
                        "  p = max(x, axis=1)\n  q = max(x, axis=0)\n"
                        "  r = max(y, axis=1)\n}\n");
    w.wrong = "y";
    cr_assert_eq(w.plan->kernels.n, 3);
    cr_assert(strcmp(w.plan->kernels.data[1].name, w.linked->kernels.data[1].name) != 0);
    BisectVerdict verdict = find(&w, "r");
    cr_expect_eq(verdict.kind, BISECT_READ, "%s", verdict.text);
    cr_expect(strstr(verdict.text, "`max` that makes `r`, line 4, in kernel g_2_r_l4"), "%s",
              verdict.text);
    world_free(&w);
}

/* An init kernel runs before the choice of a column is made, but no value of it hangs on that. */
Test(bisect, what_is_idle_is_not_blamed) {
    World w =
        world_new("graph g(y: f32[]) -> (o: f32[4, 2], p: f32[]) {\n"
                  "  b = cast(softplus(y), i32)\n"
                  "  c = cast(gather(iota([4, 4, 8], axis=0), b, axis=2), f32)\n"
                  "  o = pad(sum(c, axis=[1], keep=true), low=[0, 0], high=[0, 1], value=2.0)\n"
                  "  p = cast(b, f32)\n}\n");
    w.wrong = "b";
    cr_assert(w.plan->kernels.data[0].is_init);
    BisectVerdict verdict = find(&w, "o");
    cr_expect_eq(verdict.kind, BISECT_OP, "%s", verdict.text);
    cr_expect(strstr(verdict.text, "`gather`, line 3, in kernel g_1_sum_l4: "), "%s", verdict.text);
    world_free(&w);
}
