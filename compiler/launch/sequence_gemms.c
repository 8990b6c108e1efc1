/* GEMMs that continue a GEMM. See sequence_state.h. */
#include "launch/sequence_state.h"

#include "template/wgmma.h"
#include "schedule/schedule.h"

enum { MAX_GEMMS = WGMMA_MAX_GEMMS }; /* at once; judged for a CPU */

static bool may_join_gemms(const Kernel *kernel) {
    bool may = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        may = may || template_info(kernel->variants[v].sched.template)->joins_gemms;
    return may;
}

/* Whether both GEMMs use the same threads, or register tiles, for the same elements. */
static bool has_same_mainloop(const Sched *a, const Sched *b) {
    GemmSched s = sched_gemm(a), t = sched_gemm(b);
    CpuGemmSched u = sched_cpu_gemm_params(a), v = sched_cpu_gemm_params(b);
    return a->lanes == b->lanes && sched_tile(a).k == sched_tile(b).k && s.stages == t.stages &&
           s.warps_m == t.warps_m && u.is_blocked == v.is_blocked && u.register_m == v.register_m;
}

static bool has_same_tiles(const Sched *a, const Sched *b) {
    GemmTile of_a = sched_tile(a), of_b = sched_tile(b);
    GemmSched s = sched_gemm(a), t = sched_gemm(b);
    return a->template == b->template && of_a.m == of_b.m && of_a.n == of_b.n &&
           s.tail_n == t.tail_n && s.store_warps == t.store_warps && a->threads == b->threads &&
           a->cluster == b->cluster;
}

/* Whether both variants have the same blocks and tiles and, if the GEMMs run at once, the same
 * mainloop. */
static bool goes_with(const Variant *a, const Variant *b) {
    bool are_at_once = template_info(a->sched.template)->joins_gemms;
    return has_same_tiles(&a->sched, &b->sched) &&
           (!are_at_once || has_same_mainloop(&a->sched, &b->sched)) && a->grid == b->grid &&
           predicate_same_extents(&a->predicate, &b->predicate);
}

static bool all_go_with(const Kernel *first, const Kernel *consumer) {
    if (first->n_variants != consumer->n_variants) return false;
    for (uint32_t v = 0; v < first->n_variants; v++)
        if (!goes_with(&first->variants[v], &consumer->variants[v])) return false;
    return true;
}

/* Indices of both GEMMs are computed once, so both are wide if one is. */
static void widen_alike(Kernel *const *kernels, uint32_t n) {
    for (uint32_t v = 0; v < kernels[0]->n_variants; v++) {
        bool is_wide = false;
        for (uint32_t k = 0; k < n; k++) is_wide = is_wide || kernels[k]->variants[v].sched.is_wide;
        for (uint32_t k = 0; k < n; k++) kernels[k]->variants[v].sched.is_wide = is_wide;
    }
}

/* Gives the GEMMs matching variants. If blocks run all GEMMs at once, tiles are chosen again for
 * their number. */
static bool join_gemms(const Composer *c, Trial *t) {
    Kernel *kernels[MAX_GEMMS], *first = sequence_first(t), *consumer = sequence_consumer(t);
    uint32_t n = trial_n_kernels(t);
    bool goes = c->target->has->cores ? sched_cpu_gemm_goes_with(first, consumer)
                                      : sched_wgmma_goes_with(&t->together, first, consumer);
    bool has_rows = form_info(trial_kernel(t, n - 2)->form)->reduces_rows, go_together = true;
    if (n > MAX_GEMMS || has_rows || !goes) return false;
    for (uint32_t k = 0; k < n; k++) {
        kernels[k] = trial_kernel(t, k);
        sched_in_launch(c->arena, c->scratch, &t->together, kernels[k], (GemmLaunch){.n_gemms = n},
                        c->target);
        go_together = go_together && all_go_with(first, kernels[k]);
    }
    if (go_together) widen_alike(kernels, n);
    return go_together;
}

bool sequence_is_tiled(const Kernel *kernel) {
    bool is_tiled = form_info(kernel->form)->multiplies && !kernel->choice;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        is_tiled = is_tiled && template_info(kernel->variants[v].sched.template)->tiles_outputs;
    return is_tiled;
}

/* Whether one loop along k can multiply for both and keep both tiles in registers. */
static bool are_at_once(const Kernel *a, const Kernel *b) {
    return may_join_gemms(a) && may_join_gemms(b);
}

bool sequence_continue_gemms(const Composer *c, Trial *t) {
    const Kernel *first = sequence_first(t), *consumer = sequence_consumer(t);
    if (!sequence_is_tiled(consumer) || consumer->n_parallel != first->n_parallel) return false;
    for (uint32_t k = 0; k < first->n_parallel; k++)
        if (kernel_axis_extent(first, k) != kernel_axis_extent(consumer, k)) return false;
    return are_at_once(first, consumer) ? join_gemms(c, t) : all_go_with(first, consumer);
}
