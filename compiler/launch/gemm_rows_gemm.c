/* Gemm-rows-gemm launches (template/gemm_rows_gemm.h): a matmul, a row kernel over its result (the
 * scores) and a matmul of the rows become one launch. Neither the scores nor the rows take global
 * memory. On a GPU each pass of the row kernel recomputes the scores, which costs one matmul per
 * pass. A CPU has the scores of a few rows on the stack. */
#include "launch/smem.h"
#include "launch/trio.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/access.h"
#include "template/gemm_rows_gemm.h"
#include "schedule/gemm.h"
#include "schedule/schedule.h"

#include <string.h>

/* Whether it is a row kernel of which only the last stage stores, one value for each element. */
static bool are_rows(const Trio *t, const Kernel *kernel) {
    uint32_t n = kernel->stages.n;
    if (!kernel_lanes_reduce(kernel, &kernel->variants[0].sched) ||
        kernel->segment_axis != NO_AXIS || kernel->n_reduced != 1 || kernel->row_stores.n ||
        n < 2 || dim_lo(t->dims, kernel_n_reduced(kernel)) <= 0)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (kernel->stages.data[i].stores.n != (i + 1 == n ? 1 : 0)) return false;
    return trio_is_plain_store(t, kernel, kernel->stages.data[n - 1].stores.data,
                               kernel->n_parallel + 1);
}

/* Whether its last stage only stores, with one segment per row and an even number of columns. */
static bool are_gpu_rows(const Trio *t, const Kernel *kernel) {
    uint32_t n = kernel->stages.n;
    DimId columns = kernel_n_reduced(kernel);
    if (!are_rows(t, kernel) || dim_multiple(t->dims, columns) % GEMM_ROWS_GEMM_PAIR ||
        dim_hi(t->dims, columns) > form_info(kernel->form)->segment_elems)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (kernel->stages.data[i].reduces.n > (i + 1 == n ? 0 : GEMM_ROWS_GEMM_MOST_SUMS))
            return false;
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        if (kernel->reduces.data[i].is_arg || !dtype_is_single(kernel->reduces.data[i].acc))
            return false;
    return true;
}

/* Finds the three launches, the first of which computes the scores. */
static bool find_launches(Trio *t, uint32_t first) {
    bool is_found = t->target->has->cores ? trio_find(t, first, INT64_MAX, INT64_MAX, are_rows)
                                          : trio_find(t, first, GEMM_ROWS_GEMM_MOST_K,
                                                      GEMM_ROWS_GEMM_MOST_COLUMNS, are_gpu_rows);
    if (!is_found) return false;
    uint32_t n_args = 0;
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) n_args += trio_kernel(t, i)->args.n;
    return n_args <= MAX_KERNEL_ARGS;
}

/* The launch. */

/* Whether a tile of the variants has all columns, and both the same rows. */
static bool have_whole_rows(const Trial *t, uint32_t v) {
    const Kernel *scores = trial_kernel(t, GEMM_ROWS_GEMM_SCORES),
                 *result = trial_kernel(t, GEMM_ROWS_GEMM_RESULT);
    const CpuGemmSched *first = &scores->variants[v].sched.cpu_gemm,
                       *last = &result->variants[v].sched.cpu_gemm;
    const DimTab *dims = t->together.graph->dims;
    return first->is_blocked && last->is_blocked && first->register_m == last->register_m &&
           first->tile_n >= dim_hi(dims, kernel_axis_extent(scores, gemm_axis_n(scores))) &&
           last->tile_n >= dim_hi(dims, kernel_axis_extent(result, gemm_axis_n(result))) &&
           last->tile_k >= dim_hi(dims, kernel_n_reduced(result)) &&
           predicate_level(&scores->variants[v].predicate) ==
               predicate_level(&result->variants[v].predicate);
}

/* The bytes of a unit on the stack, at most: of both matmuls, and of a few rows of all that passes
 * between the kernels or that the row kernel keeps. */
static int64_t unit_bytes(const Trial *t, const uint32_t *passed, uint32_t v) {
    const Kernel *rows = trial_kernel(t, GEMM_ROWS_GEMM_ROWS);
    const Variant *of_rows = &rows->variants[v];
    const Sched *sched = &trial_kernel(t, 0)->variants[v].sched;
    int64_t n = dim_hi(t->together.graph->dims, kernel_n_reduced(rows)), bytes = 0;
    for (uint32_t i = 0; i + 1 < GEMM_ROWS_GEMM_KERNELS; i++) {
        const Kernel *gemm = trial_kernel(t, 2 * i);
        bytes +=
            sched_cpu_gemm_stack_bytes(gemm, &gemm->variants[v].sched) +
            sched->cpu_gemm.register_m * n * dtype_bytes(t->together.buffers.data[passed[i]].dtype);
    }
    int64_t n_beside = kernel_has_groups(rows, of_rows) ? of_rows->sched.lanes : 1;
    return bytes + of_rows->row_cache.n * n_beside * (n + sched->lanes) * (int64_t)sizeof(double);
}

static bool fits_stack(const Trial *t, const uint32_t *passed) {
    for (uint32_t v = 0; v < trial_kernel(t, 0)->n_variants; v++)
        if (unit_bytes(t, passed, v) > SCHED_CPU_TRIO_BYTES) return false;
    return true;
}

/* A work unit has some rows of all three kernels. */
static ReasonId schedule_on_cores(const Composer *c, Trial *t, const uint32_t *passed) {
    Kernel *first = trial_kernel(t, GEMM_ROWS_GEMM_SCORES),
           *rows = trial_kernel(t, GEMM_ROWS_GEMM_ROWS),
           *last = trial_kernel(t, GEMM_ROWS_GEMM_RESULT);
    GemmLaunch launch = {.n_gemms = 1, .has_rows = true, .is_in_trio = true};
    sched_in_launch(c->arena, c->scratch, &t->together, first, launch, c->target);
    launch.has_rows = false;
    sched_in_launch(c->arena, c->scratch, &t->together, last, launch, c->target);
    Variant of_rows[MAX_VARIANTS];
    if (first->n_variants != last->n_variants) return REASON_OTHER_BLOCKS;
    for (uint32_t v = 0; v < first->n_variants; v++) {
        CpuGemmSched *of_first = &first->variants[v].sched.cpu_gemm,
                     *of_last = &last->variants[v].sched.cpu_gemm;
        if (!have_whole_rows(t, v)) return REASON_OTHER_BLOCKS;
        of_last->tile_m = of_first->tile_m;
        of_last->unit_m = of_first->unit_m;
        last->variants[v].grid = first->variants[v].grid;
        of_rows[v] = trial_cpu_row_variant(rows, &first->variants[v]);
    }
    kernel_set_variants(c->scratch, rows, of_rows, first->n_variants);
    for (uint32_t v = 0; v < first->n_variants; v++) kernels_widen_alike(first, 3, v);
    return fits_stack(t, passed) ? REASON_NONE : REASON_LAUNCH_FULL;
}

static ReasonId schedule(const Composer *c, Trial *t) {
    Kernel *rows = trial_kernel(t, GEMM_ROWS_GEMM_ROWS);
    uint32_t scores = trial_kernel(t, GEMM_ROWS_GEMM_SCORES)->row_stores.data[0].buffer;
    uint32_t weights = rows->stages.data[rows->stages.n - 1].stores.data[0].buffer;
    trial_merge(t);
    if (c->target->has->cores) {
        const uint32_t passed[] = {scores, weights};
        t->together.buffers.data[scores].space = BUFFER_SHARED;
        t->together.buffers.data[weights].space = BUFFER_SHARED;
        return schedule_on_cores(c, t, passed);
    }
    Kernel *kernels[GEMM_ROWS_GEMM_KERNELS];
    for (uint32_t i = 0; i < GEMM_ROWS_GEMM_KERNELS; i++) kernels[i] = trial_kernel(t, i);
    sched_gemm_rows_gemm(c->arena, c->scratch, &t->together, kernels);
    t->together.buffers.data[scores].space = BUFFER_REGISTER;
    t->together.buffers.data[weights].space = BUFFER_REGISTER;
    return smem_fits(c, t, 0, smem_own_bytes(c, t, 0)) ? REASON_NONE : REASON_LAUNCH_FULL;
}

static bool is_asked(const Composer *c, const Trial *t) {
    (void)c;
    return trial_is_asked_to_pass(t, 1, GEMM_ROWS_GEMM_ROWS) ||
           trial_is_asked_to_pass(t, 2, GEMM_ROWS_GEMM_RESULT);
}

static void propose(Composer *c) {
    Trio t = {.plan = c->plan,
              .n_users = c->n_users,
              .target = c->target,
              .scratch = c->scratch,
              .dims = c->plan->graph->dims};
    /* A launch that was made is replaced by another launch at the same index, so the index
     * stays. */
    for (uint32_t i = 0; i < c->plan->launches.n;) {
        const uint32_t n = GEMM_ROWS_GEMM_KERNELS;
        bool is_kept =
            find_launches(&t, i) && launch_try(c, &launch_rules_gemm_rows_gemm, t.at, n, n).is_kept;
        if (!is_kept) i++;
    }
}

/* All inputs of the last kernel exist before its place. */
const LaunchRules launch_rules_gemm_rows_gemm = {.mode = LAUNCH_GEMM_ROWS_GEMM,
                                                 .sets_space = true,
                                                 .is_at_last = true,
                                                 .has_cpu = true,
                                                 .propose = propose,
                                                 .schedule = schedule,
                                                 .is_asked = is_asked,
                                                 .pays = trial_pays};

/* A matmul and the online kernel that reads its scores. */

enum { ONLINE_KERNELS = 2 };

/* Whether factors of weights are computed from the scores: where a launch has both kernels, weights
 * have taken the place of scores by then. */
static bool multiplies_scores(const Trio *t, const Kernel *online) {
    ScalarId factor = online->reduces.data[0].factor;
    const bool *is_reached = scalar_reached(t->scratch, online->scalars, factor);
    bool has = false;
    for (ScalarId id = 1; factor && id <= factor; id++) {
        const Scalar *load = scalar_get(online->scalars, id);
        has = has || (is_reached[id] && load->kind == SCALAR_LOAD && load->buffer == t->passed[0]);
    }
    return has;
}

/* Whether the kernel is an online one, on tensor cores or on a CPU, whose scores are those of the
 * matmul. */
static bool weighs(const Trio *t, const Kernel *online, const Kernel *scores) {
    if (!form_info(online->form)->weighs || online->n_parallel > MAX_ACCESS_AXES) return false;
    if (t->target->has->cores
            ? !sched_cpu_gemm_online_may(scores, online, t->target)
            : !engine_info(sched_engine(&online->variants[0].sched))->uses_tensor_cores)
        return false;
    if (multiplies_scores(t, online)) return false;
    AccessAxes axes = {.n = 0};
    DimId batches = gemm_n_batches(scores);
    for (uint32_t axis = 0; axis <= gemm_axis_m(online); axis++)
        if (axis != online->segment_axis) axes.of[axes.n++] = axis;
    axes.of[axes.n++] = gemm_axis_k(online);
    if (online->segment_axis != NO_AXIS)
        batches = dim_mul(t->dims, batches, kernel_axis_extent(online, online->segment_axis));
    return access_reads(t->plan, online, &axes, t->passed[0]) &&
           gemm_n_batches(online) == batches &&
           kernel_n_reduced(online) == kernel_axis_extent(scores, gemm_axis_n(scores)) &&
           kernel_axis_extent(online, gemm_axis_m(online)) ==
               kernel_axis_extent(scores, gemm_axis_m(scores));
}

static bool may_make_scores(const Trio *t, const Kernel *kernel) {
    if (!t->target->has->cores)
        return trio_are_scores(t, kernel,
                               t->target->has_wgmma ? GEMM_ONLINE_MOST_K : GEMM_ROWS_GEMM_MOST_K);
    return form_info(kernel->form)->multiplies && kernel->row_stores.n == 1 &&
           trio_is_plain_store(t, kernel, kernel->row_stores.data, kernel->n_parallel);
}

static bool find_online(Trio *t, uint32_t first) {
    t->at[0] = first;
    const Kernel *scores = trio_kernel(t, 0);
    if (!trio_is_alone(t, first) || !may_make_scores(t, scores)) return false;
    t->passed[0] = scores->row_stores.data[0].buffer;
    return trio_find_reader(t, first, t->passed[0], &t->at[1]) &&
           scores->args.n + trio_kernel(t, 1)->args.n <= MAX_KERNEL_ARGS &&
           weighs(t, trio_kernel(t, 1), scores);
}

static ReasonId schedule_online(const Composer *c, Trial *t) {
    uint32_t scores = trial_kernel(t, 0)->row_stores.data[0].buffer;
    trial_merge(t);
    t->together.buffers.data[scores].space = BUFFER_REGISTER;
    if (c->target->has->cores) {
        sched_cpu_gemm_online(c->scratch, c->target, trial_kernel(t, 0), trial_kernel(t, 1));
        return REASON_NONE;
    }
    sched_gemm_online(c->arena, c->scratch, c->target, &t->together, trial_kernel(t, 0),
                      trial_kernel(t, 1));
    return smem_fits(c, t, 0, smem_own_bytes(c, t, 0)) ? REASON_NONE : REASON_LAUNCH_FULL;
}

static bool is_online_asked(const Composer *c, const Trial *t) {
    (void)c;
    return trial_is_asked_to_pass(t, 1, 1);
}

static void propose_online(Composer *c) {
    Trio t = {.plan = c->plan,
              .n_users = c->n_users,
              .target = c->target,
              .scratch = c->scratch,
              .dims = c->plan->graph->dims};
    for (uint32_t i = 0; i < c->plan->launches.n;) {
        bool is_kept =
            find_online(&t, i) &&
            launch_try(c, &launch_rules_gemm_online, t.at, ONLINE_KERNELS, ONLINE_KERNELS).is_kept;
        if (!is_kept) i++;
    }
}

const LaunchRules launch_rules_gemm_online = {.mode = LAUNCH_GEMM_ONLINE,
                                              .sets_space = true,
                                              .is_at_last = true,
                                              .has_cpu = true,
                                              .propose = propose_online,
                                              .schedule = schedule_online,
                                              .is_asked = is_online_asked,
                                              .pays = trial_pays};
