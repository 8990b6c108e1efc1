/* Pieces of an axis between cuts. See cpu.h. */
#include "codegen/cpu/cpu.h"

#include <string.h>

static void add_cut(CpuCuts *cuts, int64_t place) {
    uint32_t at = cuts->n < CPU_MOST_CUTS ? cuts->n : CPU_MOST_CUTS;
    while (at > 0 && cuts->at[at - 1] > place) at--;
    if (place <= 0 || (at > 0 && cuts->at[at - 1] == place)) return;
    if (cuts->n++ >= CPU_MOST_CUTS) return;
    memmove(&cuts->at[at + 1], &cuts->at[at], (cuts->n - 1 - at) * sizeof *cuts->at);
    cuts->at[at] = place;
}

static void add_cuts(const Kernel *kernel, GuardId guard, int64_t end, CpuCuts *cuts) {
    int64_t range[2];
    for (; guard; guard = guard_get(kernel->scalars, guard).next) {
        Guard own = guard_get(kernel->scalars, guard);
        if (!point_cut_of(kernel, own, cuts->axis, &range[0], &range[1])) continue;
        for (int i = 0; i < 2; i++)
            if (range[i] < end) add_cut(cuts, range[i]);
    }
}

CpuCuts cpu_find_cuts(const Lower *lower, const ScalarId *values, uint32_t n, uint32_t axis) {
    const Kernel *kernel = lower->kernel;
    CpuCuts cuts = {.axis = axis};
    int64_t end = INT64_MAX;
    const bool *needed = kernel_needed_scalars(lower->k->arena, kernel, values, n);
    dim_is_const(lower_dims(lower), kernel_axis_extent(kernel, axis), &end);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (needed[id]) add_cuts(kernel, scalar_get(kernel->scalars, id)->guard, end, &cuts);
    if (cuts.n > CPU_MOST_CUTS) cuts.n = 0;
    return cuts;
}

/* The place in the span, or the nearer end of it. */
static Val clamp(const Lower *lower, int64_t place, Val begin, Val end) {
    const Codegen *k = lower->k;
    Val at = lower_index_const(lower, place);
    Val most = k_select(k, k_slt(k, end, at), end, at);
    return k_select(k, k_slt(k, most, begin), begin, most);
}

void cpu_each_piece(const Lower *lower, const CpuCuts *cuts, CpuSpan span, CpuPiece *emit,
                    void *user) {
    const Codegen *k = lower->k;
    Val end = k_add(k, span.begin, span.n), from = span.begin;
    PointPiece piece = {.is_any = cuts->n > 0, .axis = cuts->axis};
    for (uint32_t i = 0; i <= cuts->n; i++) {
        bool is_last = i == cuts->n;
        piece.hi = is_last ? INT64_MAX : cuts->at[i];
        Val to = is_last ? end : clamp(lower, piece.hi, span.begin, end);
        If some = if_begin(k, piece.is_any ? k_slt(k, from, to) : NULL);
        emit(user, &piece, (CpuSpan){from, piece.is_any ? k_sub(k, to, from) : span.n});
        if_end(k, &some);
        piece.lo = piece.hi;
        from = to;
    }
}
