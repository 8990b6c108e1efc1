/* Gemm-rows-gemm launches (template/gemm_rows_gemm.h): a matmul, a row kernel over its result (the
 * scores) and a matmul of the rows become one launch. Neither the scores nor the rows take global
 * memory. Each pass of the row kernel recomputes the scores, which costs one matmul per pass. */
#include "launch/smem.h"
#include "machine/machine.h"
#include "plan/access.h"
#include "template/gemm_rows_gemm.h"
#include "schedule/gemm.h"

#include <string.h>

/* The three kernels in the composer's plan, and the buffers between them. */
typedef struct Finder {
    const Plan *plan;
    const uint32_t *n_users; /* per buffer: the kernels that have it as an argument */
    const Target *target;
    Arena *scratch;
    DimTab *dims;
    uint32_t at[GEMM_ROWS_GEMM_KERNELS];         /* launches: scores, rows, result */
    uint32_t passed[GEMM_ROWS_GEMM_KERNELS - 1]; /* scores; results of the row kernel */
} Finder;

static const Kernel *kernel_of(const Finder *s, uint32_t i) {
    return launch_kernel(s->plan, &s->plan->launches.data[s->at[i]], 0);
}

/* Finding three kernels. */

static bool is_alone(const Plan *plan, uint32_t launch) {
    const Kernel *kernel = launch_kernel(plan, &plan->launches.data[launch], 0);
    return plan->launches.data[launch].n == 1 && !kernel->is_init;
}

/* Whether the kernels of the launches run together, or neither runs. */
static bool start_together(const Plan *plan, uint32_t a, uint32_t b) {
    const Kernel *first = launch_kernel(plan, &plan->launches.data[a], 0);
    const Kernel *second = launch_kernel(plan, &plan->launches.data[b], 0);
    return first->choice == second->choice && (!first->choice || first->version == second->version);
}

/* Finds the launch of the only kernel beside the maker, which is alone, that loads the temporary.
 * Returns false if there are several or the buffer is no temporary. */
static bool find_reader(const Finder *s, uint32_t maker, uint32_t buffer, uint32_t *reader) {
    const Plan *plan = s->plan;
    uint32_t n = 0;
    if (plan->buffers.data[buffer].kind != BUFFER_TEMP || s->n_users[buffer] != 2) return false;
    for (uint32_t i = maker + 1; i < plan->launches.n && !n; i++) {
        const Launch *launch = &plan->launches.data[i];
        for (uint32_t k = 0; k < launch->n && !n; k++)
            n += kernel_find_arg(launch_kernel(plan, launch, k), buffer) != NO_ARG;
        *reader = i;
    }
    return n && is_alone(plan, *reader) && start_together(plan, maker, *reader) &&
           !launch_has_own_kernel(plan, launch_kernel(plan, &plan->launches.data[*reader], 0)) &&
           !graph_block(plan->graph, plan->buffers.data[buffer].node, BLOCK_NEVER);
}

static bool is_plain_store(const Finder *s, const Kernel *kernel, const Store *store,
                           uint32_t n_axes) {
    AccessAxes axes = access_first_axes(n_axes);
    return !store->piece && !store->guard && !store->begin && axes.n > 0 &&
           store->address == access_address(kernel, &axes, &s->plan->buffers.data[store->buffer]);
}

/* Whether it is a matmul on tensor cores with 16-bit operands. */
static bool is_gemm(const Kernel *kernel) {
    if (!form_info(kernel->form)->multiplies ||
        dtype_bytes(gemm_operand_dtype(kernel)) != GEMM_ROWS_GEMM_ELEM_BYTES)
        return false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (!engine_info(sched_engine(&kernel->variants[v].sched))->uses_tensor_cores) return false;
    return true;
}

static bool are_scores(const Finder *s, const Kernel *kernel, int64_t most_k) {
    return is_gemm(kernel) && kernel->row_stores.n == 1 &&
           dim_hi(s->dims, kernel_n_reduced(kernel)) <= most_k &&
           dim_lo(s->dims, kernel_n_reduced(kernel)) > 0 &&
           is_plain_store(s, kernel, kernel->row_stores.data, kernel->n_parallel);
}

/* Whether it is a row kernel whose last stage only stores, with one segment per row and an even
 * number of columns. */
static bool are_rows(const Finder *s, const Kernel *kernel) {
    uint32_t n = kernel->stages.n;
    DimId columns = kernel_n_reduced(kernel);
    if (!form_info(kernel->form)->reduces_rows || kernel->segment_axis != NO_AXIS ||
        kernel->n_reduced != 1 || kernel->row_stores.n || n < 2 || dim_lo(s->dims, columns) <= 0 ||
        dim_multiple(s->dims, columns) % GEMM_ROWS_GEMM_PAIR ||
        dim_hi(s->dims, columns) > form_info(kernel->form)->segment_elems)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        bool is_last = i + 1 == n;
        if (stage->reduces.n > (is_last ? 0 : GEMM_ROWS_GEMM_MOST_SUMS) ||
            stage->stores.n != (is_last ? 1 : 0))
            return false;
    }
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        if (kernel->reduces.data[i].is_arg || !dtype_is_single(kernel->reduces.data[i].acc))
            return false;
    return is_plain_store(s, kernel, kernel->stages.data[n - 1].stores.data,
                          kernel->n_parallel + 1);
}

/* Whether the row kernel reduces the rows of the scores. */
static bool goes_over(const Finder *s, const Kernel *rows, const Kernel *scores) {
    AccessAxes axes = access_first_axes(rows->n_parallel + 1);
    DimId n = kernel_axis_extent(scores, gemm_axis_n(scores));
    return kernel_n_reduced(rows) == n &&
           dim_mul(s->dims, kernel_n_rows(rows), n) == kernel_n_rows(scores) &&
           access_reads(s->plan, rows, &axes, s->passed[0]);
}

/* Whether the matmul's lhs is the row kernel's result, and the matmul reads it only as an
 * operand. */
static bool multiplies(const Finder *s, const Kernel *result, const Kernel *scores) {
    if (!is_gemm(result) || result->n_parallel > MAX_ACCESS_AXES) return false;
    const Scalar *left = scalar_get(result->scalars, result->reduces.data[0].value);
    AccessAxes axes = access_first_axes(result->n_parallel - 1);
    DimId n = kernel_axis_extent(result, gemm_axis_n(result));
    if (left->kind != SCALAR_LOAD || left->buffer != s->passed[1]) return false;
    axes.of[axes.n++] = gemm_axis_k(result);
    return access_reads(s->plan, result, &axes, s->passed[1]) &&
           dim_hi(s->dims, n) <= GEMM_ROWS_GEMM_MOST_COLUMNS && dim_lo(s->dims, n) > 0 &&
           gemm_n_batches(result) == gemm_n_batches(scores) &&
           kernel_axis_extent(result, gemm_axis_m(result)) ==
               kernel_axis_extent(scores, gemm_axis_m(scores));
}

/* Finds the three launches, the first of which computes the scores. */
static bool find_launches(Finder *s, uint32_t first) {
    const Plan *plan = s->plan;
    s->at[GEMM_ROWS_GEMM_SCORES] = first;
    const Kernel *scores = kernel_of(s, GEMM_ROWS_GEMM_SCORES);
    if (!is_alone(plan, first) || scores->choice || !are_scores(s, scores, GEMM_ROWS_GEMM_MOST_K))
        return false;
    s->passed[0] = scores->row_stores.data[0].buffer;
    if (!find_reader(s, first, s->passed[0], &s->at[1])) return false;
    const Kernel *rows = kernel_of(s, 1);
    if (!are_rows(s, rows) || !goes_over(s, rows, scores)) return false;
    s->passed[1] = rows->stages.data[rows->stages.n - 1].stores.data[0].buffer;
    if (!find_reader(s, s->at[1], s->passed[1], &s->at[2])) return false;
    uint32_t n_args = scores->args.n + rows->args.n + kernel_of(s, 2)->args.n;
    return n_args <= MAX_KERNEL_ARGS && multiplies(s, kernel_of(s, 2), scores);
}

/* The launch. */

static ReasonId schedule(const Composer *c, Trial *t) {
    Kernel *rows = trial_kernel(t, GEMM_ROWS_GEMM_ROWS);
    uint32_t scores = trial_kernel(t, GEMM_ROWS_GEMM_SCORES)->row_stores.data[0].buffer;
    uint32_t weights = rows->stages.data[rows->stages.n - 1].stores.data[0].buffer;
    trial_merge(t);
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
    Finder s = {.plan = c->plan, .n_users = c->n_users, .dims = c->plan->graph->dims};
    /* A launch that was made is replaced by another launch at the same index, so the index
     * stays. */
    for (uint32_t i = 0; i < c->plan->launches.n;) {
        const uint32_t n = GEMM_ROWS_GEMM_KERNELS;
        bool is_kept =
            find_launches(&s, i) && launch_try(c, &launch_rules_gemm_rows_gemm, s.at, n, n).is_kept;
        if (!is_kept) i++;
    }
}

/* All inputs of the last kernel exist before its place. */
const LaunchRules launch_rules_gemm_rows_gemm = {.mode = LAUNCH_GEMM_ROWS_GEMM,
                                                 .sets_space = true,
                                                 .is_at_last = true,
                                                 .propose = propose,
                                                 .schedule = schedule,
                                                 .is_asked = is_asked,
                                                 .pays = trial_pays};

/* A matmul and the online kernel that reads its scores. */

enum { ONLINE_KERNELS = 2 };

/* Whether factors of weights are computed from the scores: where a launch has both kernels, weights
 * have taken the place of scores by then. */
static bool multiplies_scores(const Finder *s, const Kernel *online) {
    ScalarId factor = online->reduces.data[0].factor;
    const bool *is_reached = scalar_reached(s->scratch, online->scalars, factor);
    bool has = false;
    for (ScalarId id = 1; factor && id <= factor; id++) {
        const Scalar *load = scalar_get(online->scalars, id);
        has = has || (is_reached[id] && load->kind == SCALAR_LOAD && load->buffer == s->passed[0]);
    }
    return has;
}

/* Whether the kernel is an online one, on tensor cores or on a CPU, whose scores are those of the
 * matmul. */
static bool weighs(const Finder *s, const Kernel *online, const Kernel *scores) {
    if (!form_info(online->form)->weighs || online->n_parallel > MAX_ACCESS_AXES) return false;
    if (s->target->has->cores
            ? !sched_cpu_gemm_online_may(scores, online, s->target)
            : !engine_info(sched_engine(&online->variants[0].sched))->uses_tensor_cores)
        return false;
    if (multiplies_scores(s, online)) return false;
    AccessAxes axes = {.n = 0};
    DimId batches = gemm_n_batches(scores);
    for (uint32_t axis = 0; axis <= gemm_axis_m(online); axis++)
        if (axis != online->segment_axis) axes.of[axes.n++] = axis;
    axes.of[axes.n++] = gemm_axis_k(online);
    if (online->segment_axis != NO_AXIS)
        batches = dim_mul(s->dims, batches, kernel_axis_extent(online, online->segment_axis));
    return access_reads(s->plan, online, &axes, s->passed[0]) &&
           gemm_n_batches(online) == batches &&
           kernel_n_reduced(online) == kernel_axis_extent(scores, gemm_axis_n(scores)) &&
           kernel_axis_extent(online, gemm_axis_m(online)) ==
               kernel_axis_extent(scores, gemm_axis_m(scores));
}

static bool may_make_scores(const Finder *s, const Kernel *kernel) {
    if (!s->target->has->cores)
        return are_scores(s, kernel,
                          s->target->has_wgmma ? GEMM_ONLINE_MOST_K : GEMM_ROWS_GEMM_MOST_K);
    return form_info(kernel->form)->multiplies && kernel->row_stores.n == 1 &&
           is_plain_store(s, kernel, kernel->row_stores.data, kernel->n_parallel);
}

static bool find_online(Finder *s, uint32_t first) {
    s->at[0] = first;
    const Kernel *scores = kernel_of(s, 0);
    if (!is_alone(s->plan, first) || !may_make_scores(s, scores)) return false;
    s->passed[0] = scores->row_stores.data[0].buffer;
    return find_reader(s, first, s->passed[0], &s->at[1]) &&
           scores->args.n + kernel_of(s, 1)->args.n <= MAX_KERNEL_ARGS &&
           weighs(s, kernel_of(s, 1), scores);
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
    Finder s = {.plan = c->plan,
                .n_users = c->n_users,
                .target = c->target,
                .scratch = c->scratch,
                .dims = c->plan->graph->dims};
    for (uint32_t i = 0; i < c->plan->launches.n;) {
        bool is_kept =
            find_online(&s, i) &&
            launch_try(c, &launch_rules_gemm_online, s.at, ONLINE_KERNELS, ONLINE_KERNELS).is_kept;
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
