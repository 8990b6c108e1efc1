/* See totals.h. */
#include "cost/totals.h"

static double number(const PlanCost *cost, DimId dim) {
    return dim_number(cost->plan->graph->dims, dim, cost->dims);
}

static double stored_bytes(Arena *arena, const PlanCost *cost, const VecU32 *users,
                           uint32_t buffer) {
    double total = 0;
    for (uint32_t i = 0; i < users->n; i++) {
        const Kernel *kernel = &cost->plan->kernels.data[users->data[i]];
        if (users->data[i] < cost->n_init || kernel_is_alternative(kernel)) continue;
        total += footprint_stores(arena, cost->plan, kernel, buffer, cost->dims).bytes;
    }
    return total;
}

/* Per buffer: the kernels of a run that read it at these dims, themselves or in place of a copy of
 * it, ascending. */
static VecU32 *find_readers(Arena *arena, const PlanCost *cost) {
    VecU32 *readers = arena_array(arena, VecU32, cost->plan->buffers.n);
    for (uint32_t k = cost->n_init; k < cost->plan->kernels.n; k++) {
        const Kernel *kernel = &cost->plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            VecU32 *of = &readers[plan_read_buffer(cost->plan, kernel->args.data[i], cost->dims)];
            if (!of->n || of->data[of->n - 1] != k) vec_push(arena, of, k);
        }
    }
    return readers;
}

/* The used parts of inputs and prepared tensors, and the outputs, which may be stored in slices.
 * All versions of a choice use the same. */
static double least_bytes(Arena *arena, const PlanCost *cost) {
    double total = 0;
    const VecU32 *users = plan_users(arena, cost->plan), *readers = find_readers(arena, cost);
    for (uint32_t b = 0; b < cost->plan->buffers.n; b++) {
        BufferKind kind = cost->plan->buffers.data[b].kind;
        if (kind == BUFFER_TEMP) continue;
        total += kind == BUFFER_OUTPUT
                     ? stored_bytes(arena, cost, &users[b], b)
                     : footprint_least_loads(arena, cost->plan, &readers[b], b, cost->dims).bytes;
    }
    return total;
}

/* Per buffer: whether a run reads or writes it. */
static bool *used_in_run(Arena *arena, const PlanCost *cost) {
    bool *is_used = arena_array(arena, bool, cost->plan->buffers.n);
    for (uint32_t k = cost->n_init; k < cost->plan->kernels.n; k++) {
        const Kernel *kernel = &cost->plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) is_used[kernel->args.data[i]] = true;
    }
    return is_used;
}

/* Memory that only init steps read is freed after them. */
static double bound_bytes(Arena *arena, const PlanCost *cost) {
    double total = 0;
    const bool *is_used = used_in_run(arena, cost);
    for (uint32_t b = 0; b < cost->plan->buffers.n; b++) {
        BufferKind kind = cost->plan->buffers.data[b].kind;
        bool is_gone = kind == BUFFER_PREPARED && !is_used[b];
        if (kind != BUFFER_TEMP && !is_gone)
            total +=
                number(cost, buffer_bytes(cost->plan->graph->dims, &cost->plan->buffers.data[b]));
    }
    return total;
}

void cost_totals(Arena *arena, PlanCost *cost) {
    cost->least_bytes = least_bytes(arena, cost);
    cost->bound_bytes = bound_bytes(arena, cost);
    int64_t n = 0;
    bool is_known =
        dim_eval_largest(cost->plan->graph->dims, &cost->plan->workspace, cost->dims, &n);
    cost->workspace_bytes = is_known ? (double)n : 0;
    cost->unshared_bytes = number(cost, cost->plan->peak_bytes_unshared);
}
