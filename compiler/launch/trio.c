/* See trio.h. */
#include "launch/trio.h"

#include "launch/trial.h"
#include "machine/machine.h"
#include "plan/access.h"
#include "schedule/gemm.h"
#include "template/gemm_rows_gemm.h"

const Kernel *trio_kernel(const Trio *t, uint32_t i) {
    return launch_kernel(t->plan, &t->plan->launches.data[t->at[i]], 0);
}

bool trio_is_alone(const Trio *t, uint32_t launch) {
    const Kernel *kernel = launch_kernel(t->plan, &t->plan->launches.data[launch], 0);
    return t->plan->launches.data[launch].n == 1 && !kernel->is_init;
}

/* Whether the kernels of the launches run together, or neither runs. */
static bool start_together(const Plan *plan, uint32_t a, uint32_t b) {
    const Kernel *first = launch_kernel(plan, &plan->launches.data[a], 0);
    const Kernel *second = launch_kernel(plan, &plan->launches.data[b], 0);
    return first->choice == second->choice && (!first->choice || first->version == second->version);
}

bool trio_find_reader(const Trio *t, uint32_t maker, uint32_t buffer, uint32_t *reader) {
    const Plan *plan = t->plan;
    uint32_t n = 0;
    if (plan->buffers.data[buffer].kind != BUFFER_TEMP || t->n_users[buffer] != 2) return false;
    for (uint32_t i = maker + 1; i < plan->launches.n && !n; i++) {
        const Launch *launch = &plan->launches.data[i];
        for (uint32_t k = 0; k < launch->n && !n; k++)
            n += kernel_find_arg(launch_kernel(plan, launch, k), buffer) != NO_ARG;
        *reader = i;
    }
    return n && trio_is_alone(t, *reader) && start_together(plan, maker, *reader) &&
           !launch_has_own_kernel(plan, launch_kernel(plan, &plan->launches.data[*reader], 0)) &&
           !graph_block(plan->graph, plan->buffers.data[buffer].node, BLOCK_NEVER);
}

bool trio_is_plain_store(const Trio *t, const Kernel *kernel, const Store *store, uint32_t n_axes) {
    AccessAxes axes = access_first_axes(n_axes);
    return !store->piece && !store->guard && !store->begin && axes.n > 0 &&
           store->address == access_address(kernel, &axes, &t->plan->buffers.data[store->buffer]);
}

bool trio_is_gemm(const Trio *t, const Kernel *kernel) {
    if (t->target->has->cores)
        return form_info(kernel->form)->multiplies && sched_cpu_gemm_is_in_trio(kernel, t->target);
    if (!form_info(kernel->form)->multiplies ||
        dtype_bytes(gemm_operand_dtype(kernel)) != GEMM_ROWS_GEMM_ELEM_BYTES)
        return false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (!engine_info(sched_engine(&kernel->variants[v].sched))->uses_tensor_cores) return false;
    return true;
}

bool trio_are_scores(const Trio *t, const Kernel *kernel, int64_t most_k) {
    return trio_is_gemm(t, kernel) && kernel->row_stores.n == 1 &&
           dim_hi(t->dims, kernel_n_reduced(kernel)) <= most_k &&
           dim_lo(t->dims, kernel_n_reduced(kernel)) > 0 &&
           trio_is_plain_store(t, kernel, kernel->row_stores.data, kernel->n_parallel);
}

/* Whether the row kernel reduces the rows of the scores. */
static bool goes_over(const Trio *t, const Kernel *rows, const Kernel *scores) {
    AccessAxes axes = access_first_axes(rows->n_parallel + 1);
    DimId n = kernel_axis_extent(scores, gemm_axis_n(scores));
    return kernel_n_reduced(rows) == n &&
           dim_mul(t->dims, kernel_n_rows(rows), n) == kernel_n_rows(scores) &&
           access_reads(t->plan, rows, &axes, t->passed[0]);
}

/* Whether the matmul's lhs is the row kernel's result, and the matmul reads it only as an
 * operand. */
static bool multiplies(const Trio *t, const Kernel *result, const Kernel *scores,
                       int64_t most_columns) {
    if (!trio_is_gemm(t, result) || result->n_parallel > MAX_ACCESS_AXES) return false;
    const Scalar *left = scalar_get(result->scalars, result->reduces.data[0].value);
    AccessAxes axes = access_first_axes(result->n_parallel - 1);
    DimId n = kernel_axis_extent(result, gemm_axis_n(result));
    if (left->kind != SCALAR_LOAD || left->buffer != t->passed[1]) return false;
    axes.of[axes.n++] = gemm_axis_k(result);
    return access_reads(t->plan, result, &axes, t->passed[1]) &&
           dim_hi(t->dims, n) <= most_columns && dim_lo(t->dims, n) > 0 &&
           gemm_n_batches(result) == gemm_n_batches(scores) &&
           kernel_axis_extent(result, gemm_axis_m(result)) ==
               kernel_axis_extent(scores, gemm_axis_m(scores));
}

bool trio_find(Trio *t, uint32_t first, int64_t most_k, int64_t most_columns,
               bool (*are_rows)(const Trio *, const Kernel *)) {
    t->at[GEMM_ROWS_GEMM_SCORES] = first;
    const Kernel *scores = trio_kernel(t, GEMM_ROWS_GEMM_SCORES);
    if (!trio_is_alone(t, first) || scores->choice || !trio_are_scores(t, scores, most_k))
        return false;
    t->passed[0] = scores->row_stores.data[0].buffer;
    if (!trio_find_reader(t, first, t->passed[0], &t->at[GEMM_ROWS_GEMM_ROWS])) return false;
    const Kernel *rows = trio_kernel(t, GEMM_ROWS_GEMM_ROWS);
    if (!are_rows(t, rows) || !goes_over(t, rows, scores)) return false;
    t->passed[1] = rows->stages.data[rows->stages.n - 1].stores.data[0].buffer;
    return trio_find_reader(t, t->at[GEMM_ROWS_GEMM_ROWS], t->passed[1],
                            &t->at[GEMM_ROWS_GEMM_RESULT]) &&
           multiplies(t, trio_kernel(t, GEMM_ROWS_GEMM_RESULT), scores, most_columns);
}
