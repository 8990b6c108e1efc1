/* See scan.h. */
#include "codegen/scalar/scan.h"

void scan_prepare(Point *row) {
    const Kernel *kernel = row->lower->kernel;
    const Stage *stage = scan_stage(kernel);
    Arena *arena = row->lower->k->arena;
    Vec(ScalarId) roots = {0};
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(kernel, stage, i);
        if (!reduce->join) vec_push(arena, &roots, reduce->value);
        for (uint32_t k = 0; reduce->join && k < reduce->join->n; k++)
            vec_push(arena, &roots, reduce->join->elements[k]);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        vec_push(arena, &roots, stage->stores.data[i].value);
    point_prepare(row, roots.data, roots.n, 1u << kernel->first_reduced);
}

uint32_t scan_units(const Lower *lower, ScanUnit units[MAX_STAGE_VALUES]) {
    const Stage *stage = scan_stage(lower->kernel);
    uint32_t n = 0, first = 0;
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(lower->kernel, stage, i);
        bool is_new = true;
        for (uint32_t k = 0; k < n && reduce->join; k++)
            is_new = is_new && units[k].reduce->join != reduce->join;
        if (!is_new) continue;
        units[n] = (ScanUnit){reduce, first, reduce->join ? reduce->join->n : 1};
        first += units[n++].n;
    }
    return n;
}

uint32_t scan_n_accs(const Lower *lower) {
    ScanUnit units[MAX_STAGE_VALUES];
    uint32_t n = scan_units(lower, units);
    return n ? units[n - 1].first + units[n - 1].n : 0;
}

/* The accumulator that the reduction's result is made of. */
static uint32_t acc_of(const Lower *lower, const Reduce *reduce) {
    ScanUnit units[MAX_STAGE_VALUES];
    uint32_t n = scan_units(lower, units), k = 0;
    while (k + 1 < n && units[k].reduce != reduce &&
           !(reduce->join && units[k].reduce->join == reduce->join))
        k++;
    return units[k].first + reduce->joined;
}

void scan_put_accs(Acc *to, const Acc *from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) to[i] = from[i];
}

static Acc *accs_new(const Lower *lower) {
    return arena_array(lower->k->arena, Acc, scan_n_accs(lower));
}

Acc *scan_identities(const Lower *lower, uint32_t lanes) {
    ScanUnit units[MAX_STAGE_VALUES];
    uint32_t n = scan_units(lower, units);
    Acc *accs = accs_new(lower);
    for (uint32_t i = 0; i < n; i++) {
        const Reduce *reduce = units[i].reduce;
        if (reduce->join)
            scan_put_accs(accs + units[i].first, acc_join_none(lower, reduce->join, lanes),
                          units[i].n);
        else
            accs[units[i].first] = acc_identity(lower, reduce, lanes);
    }
    return accs;
}

void scan_combine_unit(const Lower *lower, ScanUnit unit, const Acc *before, const Acc *after,
                       Acc *to) {
    const Acc *a = before + unit.first, *b = after + unit.first;
    if (unit.reduce->join)
        scan_put_accs(to + unit.first, acc_join_parts(lower, unit.reduce->join, a, b), unit.n);
    else
        to[unit.first] = acc_combine(lower, unit.reduce, *a, *b);
}

Acc *scan_combine(const Lower *lower, const Acc *before, const Acc *after) {
    ScanUnit units[MAX_STAGE_VALUES];
    uint32_t n = scan_units(lower, units);
    Acc *accs = accs_new(lower);
    for (uint32_t i = 0; i < n; i++) scan_combine_unit(lower, units[i], before, after, accs);
    return accs;
}

/* Takes the element at the point into `total`. */
static void take_element(Point *point, Acc *total) {
    const Lower *lower = point->lower;
    ScanUnit units[MAX_STAGE_VALUES];
    uint32_t n = scan_units(lower, units);
    Acc *element = accs_new(lower);
    for (uint32_t i = 0; i < n; i++) {
        const Reduce *reduce = units[i].reduce;
        if (reduce->join)
            scan_put_accs(element + units[i].first, acc_join_element(point, reduce->join),
                          units[i].n);
        else
            element[units[i].first] = acc_element(point, reduce);
        scan_combine_unit(lower, units[i], total, element, total);
    }
}

/* Takes one element into `total`, and stores the results there. */
static void visit(const ScanWalk *walk, Val at, const Acc *before, Acc *total) {
    const Lower *lower = walk->row->lower;
    const Kernel *kernel = lower->kernel;
    const Stage *stage = scan_stage(kernel);
    Point point = point_inside(walk->row);
    point.axis[kernel->first_reduced] = at;
    take_element(&point, total);
    if (!walk->stores) return;
    const Acc *results = scan_combine(lower, before, total);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t acc = acc_of(lower, stage_reduce(kernel, stage, i));
        acc_finish(&point, stage->reduces.data[i], results[acc]);
    }
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
    uint32_t n = scan_n_accs(lower);
    Acc *total = scan_identities(lower, walk->row->lanes);
    int64_t step = part_elems(walk->level);
    Loop loop = loop_begin(k, walk->begin, walk->end, step);
    acc_loop_carry(k, &loop, total, n);
    if (walk->level == 0) {
        visit(walk, loop.index, before, total);
    } else {
        ScanWalk part = *walk;
        Val past = k_addi(k, loop.index, step);
        part.level--;
        part.begin = loop.index;
        part.end = k_select(k, k_slt(k, past, walk->end), past, walk->end);
        const Acc *own = scan_walk(&part, scan_combine(lower, before, total));
        scan_put_accs(total, scan_combine(lower, total, own), n);
    }
    loop_end(k, &loop);
    return total;
}
