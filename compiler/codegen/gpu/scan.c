/* GPU scans. Either each thread walks a row of its own; neighbouring rows then lie side by side. Or
 * a block walks one row, tile by tile. Each of its SCAN_RUN * SCAN_RUN threads has a run of the
 * tile, whose total it puts into shared memory. It joins what comes before the run: the totals of
 * the runs before in its group, and of the groups before. Then it walks its run again and stores.
 */
#include "codegen/gpu/stage.h"
#include "codegen/scalar/scan.h"

typedef struct Scan {
    Lower *lower;
    Codegen *k;
    ScanUnit units[MAX_STAGE_VALUES];
    uint32_t n_units, n_accs;
    Point row;
    Val run, group;     /* i32: the thread's run in its group, and its group */
    SharedAccs *runs;   /* per reduction: the runs' totals [SCAN_RUN,SCAN_RUN] */
    SharedAccs *groups; /* per reduction: the groups' totals [SCAN_RUN] */
} Scan;

static void scan_alone(Scan *scan) {
    Lower *lower = scan->lower;
    const Codegen *k = scan->k;
    Val row = gpu_step(lower, 1);
    If exists = if_begin(k, k_ult(k, row, lower_dim(lower, kernel_n_rows(lower->kernel))));
    lower_split(lower, row, 0, lower->kernel->n_parallel, &scan->row);
    scan_prepare(&scan->row);
    ScanWalk walk = {.row = &scan->row,
                     .begin = lower_index_const(lower, 0),
                     .end = lower_extent(lower, lower->kernel->first_reduced),
                     .level = SCAN_LEVELS,
                     .stores = true};
    scan_walk(&walk, scan_identities(lower, 1));
    if_end(k, &exists);
}

static SharedAccs *totals_new(const Scan *scan, uint32_t n, const char *name) {
    SharedAccs *totals = arena_array(scan->k->arena, SharedAccs, scan->n_accs);
    for (uint32_t u = 0; u < scan->n_units; u++)
        for (uint32_t i = 0; i < scan->units[u].n; i++) {
            LLVMTypeRef type = k_value_type(scan->k, scan_unit_dtype(scan->units[u], i), 1);
            totals[scan->units[u].first + i] = gpu_shared_accs(scan->k, type, false, n, name);
        }
    return totals;
}

static void put_totals(const Scan *scan, const SharedAccs *to, Val at, const Acc *totals) {
    for (uint32_t i = 0; i < scan->n_accs; i++)
        gpu_shared_accs_put(scan->k, &to[i], at, (Acc){totals[i].value, NULL});
}

/* Joins the unit's totals at `at` (i32) to `joined` where the condition holds. */
static void join_total(const Scan *scan, ScanUnit unit, const SharedAccs *from, Val at,
                       Val condition, Acc *joined) {
    const Codegen *k = scan->k;
    Acc *next = arena_array(k->arena, Acc, scan->n_accs);
    for (uint32_t i = unit.first; i < unit.first + unit.n; i++) {
        next[i] = gpu_shared_accs_get(k, &from[i], at, (Acc){joined[i].value, NULL});
        if (joined[i].index) next[i].index = k_int(k->i1, 1);
    }
    scan_combine_unit(scan->lower, unit, joined, next, next);
    for (uint32_t i = unit.first; i < unit.first + unit.n; i++)
        joined[i] = acc_select(scan->lower, condition, next[i], joined[i]);
}

/* The first `n` (i32) of SCAN_RUN totals from `first` (i32) on, in ascending order. */
static Acc *join_totals(const Scan *scan, const SharedAccs *from, Val first, Val n) {
    const Codegen *k = scan->k;
    Acc *joined = scan_identities(scan->lower, 1);
    for (uint32_t run = 0; run < SCAN_RUN; run++) {
        Val is_before = k_slt(k, k_i32(k, run), n);
        for (uint32_t u = 0; u < scan->n_units; u++)
            join_total(scan, scan->units[u], from, k_addi(k, first, run), is_before, joined);
    }
    return joined;
}

/* Scans a tile, before which comes `before`. Returns its total. */
static Acc *scan_tile(const Scan *scan, ScanWalk run, const Acc *before) {
    Codegen *k = scan->k;
    const Lower *lower = scan->lower;
    const Acc *own = scan_walk(&run, before);
    Val first = k_muli(k, scan->group, SCAN_RUN);
    put_totals(scan, scan->runs, k_add(k, first, scan->run), own);
    gpu_barrier(k);
    const Acc *runs = join_totals(scan, scan->runs, first, scan->run);
    If last = if_begin(k, k_eqi(k, scan->run, SCAN_RUN - 1));
    put_totals(scan, scan->groups, scan->group, scan_combine(lower, runs, own));
    if_end(k, &last);
    gpu_barrier(k);
    Val none = k_i32(k, 0);
    const Acc *groups = join_totals(scan, scan->groups, none, scan->group);
    run.stores = true;
    scan_walk(&run, scan_combine(lower, scan_combine(lower, before, groups), runs));
    return join_totals(scan, scan->groups, none, k_i32(k, SCAN_RUN));
}

static void scan_together(Scan *scan) {
    Lower *lower = scan->lower;
    Codegen *k = scan->k;
    Val thread = gpu_thread(k), n = lower_extent(lower, lower->kernel->first_reduced);
    scan->run = k_andi(k, thread, SCAN_RUN - 1);
    scan->group = k_udivi(k, thread, SCAN_RUN);
    scan->runs = totals_new(scan, SCAN_RUN * SCAN_RUN, "runs");
    scan->groups = totals_new(scan, SCAN_RUN, "groups");
    lower_split(lower, gpu_block(lower), 0, lower->kernel->n_parallel, &scan->row);
    scan_prepare(&scan->row);
    Acc *before = scan_identities(lower, 1);
    Loop tiles = loop_over(k, n, SCAN_TILE);
    acc_loop_carry(k, &tiles, before, scan->n_accs);
    Val begin = k_add(k, tiles.index, gpu_index(lower, k_muli(k, thread, SCAN_RUN)));
    Val past = k_addi(k, begin, SCAN_RUN);
    ScanWalk run = {
        .row = &scan->row, .begin = begin, .end = k_select(k, k_slt(k, past, n), past, n)};
    const Acc *joined = scan_combine(lower, before, scan_tile(scan, run, before));
    for (uint32_t i = 0; i < scan->n_accs; i++) before[i] = joined[i];
    loop_end(k, &tiles);
}

void emit_gpu_scan(Lower *lower) {
    Scan scan = {
        .lower = lower, .k = lower->k, .n_accs = scan_n_accs(lower), .row = point_new(lower, 1)};
    scan.n_units = scan_units(lower, scan.units);
    if (lower->variant->sched.row.threads_per_row > 1)
        scan_together(&scan);
    else
        scan_alone(&scan);
}
