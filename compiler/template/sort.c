/* See sort.h. */
#include "template/sort.h"

/* The least bound of the sorted axis. */
static int64_t bound_of(const Kernel *kernel, GuardId guard) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId axis = index_axis(tab, kernel->first_reduced);
    int64_t bound = INT64_MAX;
    for (; guard; guard = guard_get(kernel->scalars, guard).next) {
        Guard condition = guard_get(kernel->scalars, guard);
        int64_t most = dim_hi(indextab_dims(tab), condition.hi);
        if (condition.index == axis && most < bound) bound = most;
    }
    return bound;
}

int64_t sort_kept(const Kernel *kernel) {
    const Stage *stage = &kernel->stages.data[0];
    int64_t kept = 0;
    for (uint32_t i = 0; i < stage->stores.n; i++) {
        const Store *store = &stage->stores.data[i];
        int64_t own = store->is_scratch ? 0 : bound_of(kernel, store->guard);
        if (own > kept) kept = own;
    }
    return kernel->row_stores.n ? INT64_MAX : kept;
}

bool sort_selects(const Kernel *kernel, bool has_cores) {
    int64_t kept = sort_kept(kernel);
    if (kept < 1 || has_cores) return kept >= 1 && kept <= SORT_SELECT_CPU;
    return kept <= SORT_SELECT_GPU && dtype_bytes(kernel->reduces.data[0].acc) <= sizeof(int32_t);
}

uint32_t sort_kept_log2(const Kernel *kernel) {
    int64_t kept = sort_kept(kernel);
    uint32_t log2 = SORT_RUN_LOG2;
    while (log2 < 62 && (int64_t)1 << log2 < kept) log2++;
    return log2;
}
