/* See scan.h. */
#include "codegen/scalar/scan.h"

void scan_prepare(Point *row) {
    const Kernel *kernel = row->lower->kernel;
    const Stage *stage = scan_stage(kernel);
    uint32_t n = 0;
    ScalarId *roots =
        arena_array(row->lower->k->arena, ScalarId, stage->reduces.n + (size_t)stage->stores.n);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        roots[n++] = stage_reduce(kernel, stage, i)->value;
    for (uint32_t i = 0; i < stage->stores.n; i++) roots[n++] = stage->stores.data[i].value;
    point_prepare(row, roots, n, 1u << kernel->first_reduced);
}

static Acc *accs_new(const Lower *lower) {
    return arena_array(lower->k->arena, Acc, scan_stage(lower->kernel)->reduces.n);
}

Acc *scan_identities(const Lower *lower, uint32_t lanes) {
    const Stage *stage = scan_stage(lower->kernel);
    Acc *accs = accs_new(lower);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        accs[i] = acc_identity(lower, stage_reduce(lower->kernel, stage, i), lanes);
    return accs;
}

Acc *scan_combine(const Lower *lower, const Acc *before, const Acc *after) {
    const Stage *stage = scan_stage(lower->kernel);
    Acc *accs = accs_new(lower);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        accs[i] = acc_combine(lower, stage_reduce(lower->kernel, stage, i), before[i], after[i]);
    return accs;
}

/* Takes one element into `total`, and stores the results there. */
static void visit(const ScanWalk *walk, Val at, const Acc *before, Acc *total) {
    const Lower *lower = walk->row->lower;
    const Kernel *kernel = lower->kernel;
    const Stage *stage = scan_stage(kernel);
    Point point = point_inside(walk->row);
    point.axis[kernel->first_reduced] = at;
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(kernel, stage, i);
        total[i] = acc_take(lower, reduce, total[i], acc_element(&point, reduce));
    }
    if (!walk->stores) return;
    const Acc *results = scan_combine(lower, before, total);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        acc_finish(&point, stage->reduces.data[i], results[i]);
    point_prepare_stores(&point, stage->stores.data, stage->stores.n);
    point_store_all(&point, stage->stores.data, stage->stores.n);
}

/* The elements of a run, group or tile of this level, which are walked one by one. */
static int64_t part_elems(uint32_t level) {
    int64_t n = 1;
    while (level-- > 0) n *= SCAN_RUN;
    return n;
}

Acc *scan_walk(const ScanWalk *walk, const Acc *before) {
    const Lower *lower = walk->row->lower;
    const Codegen *k = lower->k;
    const Stage *stage = scan_stage(lower->kernel);
    Acc *total = scan_identities(lower, walk->row->lanes);
    int64_t step = part_elems(walk->level);
    Loop loop = loop_begin(k, walk->begin, walk->end, step);
    acc_loop_carry(k, &loop, total, stage->reduces.n);
    if (walk->level == 0) {
        visit(walk, loop.index, before, total);
    } else {
        ScanWalk part = *walk;
        Val past = k_addi(k, loop.index, step);
        part.level--;
        part.begin = loop.index;
        part.end = k_select(k, k_slt(k, past, walk->end), past, walk->end);
        const Acc *own = scan_walk(&part, scan_combine(lower, before, total));
        const Acc *joined = scan_combine(lower, total, own);
        for (uint32_t i = 0; i < stage->reduces.n; i++) total[i] = joined[i];
    }
    loop_end(k, &loop);
    return total;
}
