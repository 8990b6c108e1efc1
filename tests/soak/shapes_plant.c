/* Planted mistakes that only a shape or another run shows, and a wrong op in every program. See
 * shapes.h. */
#include "shapes.h"

#include "lib/faults.h"

#include <string.h>

static struct {
    bool has_wrong_op, is_unsteady;
    DriverHook hook; /* of what is not drawn anew for each program */
    RandomFault fault;
} planted;

/* What the kernel stores of outputs lies one element too far: the last is behind the tensor. */
static void push_stores(const Plan *plan, Kernel *kernel, Store *stores, uint32_t n) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId one = dim_const(plan->graph->dims, 1);
    for (uint32_t i = 0; i < n; i++) {
        if (plan->buffers.data[stores[i].buffer].kind != BUFFER_OUTPUT) continue;
        stores[i].address = index_add_dim(tab, stores[i].address, one);
    }
}

static void store_beyond(void *user, Arena *arena, Plan *plan, bool is_fused) {
    (void)user, (void)arena;
    for (uint32_t k = 0; k < plan->kernels.n && is_fused; k++) {
        Kernel *kernel = &plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->stages.n; i++)
            push_stores(plan, kernel, kernel->stages.data[i].stores.data,
                        kernel->stages.data[i].stores.n);
        push_stores(plan, kernel, kernel->row_stores.data, kernel->row_stores.n);
    }
}

/* The last kernel's last block or unit does not run. */
static void leave_unwritten(void *user, Arena *arena, Plan *plan, bool is_fused) {
    (void)user, (void)arena;
    DimTab *dims = plan->graph->dims;
    if (!is_fused || plan->kernels.n == 0) return;
    Kernel *kernel = &plan->kernels.data[plan->kernels.n - 1];
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        kernel->variants[v].grid = dim_sub(dims, kernel->variants[v].grid, dim_const(dims, 1));
}

bool shapes_plant(const char *name) {
    planted.has_wrong_op = strcmp(name, "wrong_op_anywhere") == 0;
    planted.is_unsteady = strcmp(name, "unsteady") == 0;
    if (strcmp(name, "stored_beyond") == 0) planted.hook.scheduled = store_beyond;
    if (strcmp(name, "left_unwritten") == 0) planted.hook.scheduled = leave_unwritten;
    if (planted.hook.scheduled) compile_with(planted.hook);
    return planted.has_wrong_op || planted.is_unsteady || planted.hook.scheduled;
}

void shapes_plant_program(uint64_t number) {
    if (!planted.has_wrong_op) return;
    planted.fault = (RandomFault){.seed = number};
    compile_with(fault_random_hook(&planted.fault));
}

bool shapes_is_planted(void) {
    return planted.fault.n_planted > 0;
}

bool shapes_are_unsteady(void) {
    return planted.is_unsteady;
}
