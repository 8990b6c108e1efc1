/* Splitting the kernels of a fused plan. See split.h. */
#include "split/split.h"

#include "split/split_keys.h"
#include "split/split_reduce.h"

#include <string.h>

typedef struct StoreCount {
    uint32_t buffer, n;
} StoreCount;

static void count_store(void *user, const Store *store) {
    StoreCount *count = user;
    count->n += store->buffer == count->buffer;
}

/* Kernels that store pieces of one shape get pointers to the pieces. Then the kernels differ in
 * nothing else and can share one grid. */
static void point_at_piece(const Kernel *kernel, Store *store) {
    if (!store->piece || store->guard)
        return; /* outside the guard the address may lie before the
                 * piece */
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId zero = dim_const(dims, 0), begin = index_expr(tab, store->address).offset;
    StoreCount count = {.buffer = store->buffer};
    kernel_each_store(kernel, count_store, &count);
    if (count.n != 1 || begin == zero || begin == DIM_NONE) return;
    store->begin = begin;
    store->address = index_add_dim(tab, store->address, dim_sub(dims, zero, begin));
}

static void point_at_pieces(Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        Stage *stage = &kernel->stages.data[i];
        for (uint32_t k = 0; k < stage->stores.n; k++)
            point_at_piece(kernel, &stage->stores.data[k]);
    }
    for (uint32_t k = 0; k < kernel->row_stores.n; k++)
        point_at_piece(kernel, &kernel->row_stores.data[k]);
}

void split_plan(Arena *arena, Plan *plan) {
    uint32_t n = plan->kernels.n;
    const Kernel *whole = plan->kernels.data;
    for (uint32_t k = 0; k < n; k++) {
        bool is_in_place = plan->kernels.data == whole; /* no kernel was split yet */
        if (is_in_place) plan->kernels.n = plan->kernels.capacity = k;
        bool is_split = form_info(whole[k].form)->weighs
                            ? split_keys_kernel(arena, plan, whole, n, k)
                            : split_kernel(arena, plan, &whole[k]);
        if (!is_split && !is_in_place) vec_push(arena, &plan->kernels, whole[k]);
    }
    if (plan->kernels.data == whole) plan->kernels.n = plan->kernels.capacity = n;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        point_at_pieces(&plan->kernels.data[k]);
        kernel_note_interface(arena, &plan->kernels.data[k]);
    }
}

bool split_pass(const Planning *p, PlanUnit *unit) {
    split_plan(p->arena, unit->plan);
    return true;
}
