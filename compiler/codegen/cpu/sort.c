/* CPU sorts: a unit is a row (codegen/scalar/sort.h). Short rows have their orders on the stack.
 *
 * Of a row of which few first places are read, one walk keeps these in vectors: their ranks in
 * ascending order, and the numbers of their elements. A vector of keys is compared with the last
 * rank that is kept. Few elements pass, and each is inserted: the slots behind its place move by
 * one. Elements come in the order of their numbers, so one goes behind equal ones. */
#include "codegen/cpu/cpu.h"
#include "codegen/scalar/sort.h"

typedef struct Kept {
    Lower *lower;
    const Point *row;
    uint32_t n, n_slots;  /* places that are kept, and a power of two for them */
    uint32_t lanes, bits; /* of a vector of keys, and of a rank */
    Val slots[2];         /* vectors: ranks, and numbers (i32), which are -1 in free slots */
} Kept;

static Kept kept_new(Lower *lower, const Point *row) {
    const Codegen *k = lower->k;
    uint32_t bytes = dtype_bytes(lower->kernel->reduces.data[0].acc);
    Kept kept = {.lower = lower,
                 .row = row,
                 .n = (uint32_t)sort_kept(lower->kernel),
                 .n_slots = 2,
                 .lanes = k->target->vector_bytes / bytes,
                 .bits = 8 * bytes};
    while (kept.n_slots < kept.n) kept.n_slots *= 2;
    LLVMTypeRef type = LLVMIntTypeInContext(k->context, kept.bits);
    kept.slots[0] = k_splat(k, k_int(type, -1), kept.n_slots);
    kept.slots[1] = k_splat(k, k_i32(k, -1), kept.n_slots);
    return kept;
}

/* The slots one place on; the first one is 0. */
static Val moved(const Kept *kept, Val slots) {
    const Codegen *k = kept->lower->k;
    Val from[SORT_SELECT_CPU];
    for (uint32_t i = 0; i < kept->n_slots; i++) from[i] = k_i32(k, i ? i - 1 : kept->n_slots);
    return k_shuffle(k, slots, LLVMConstNull(LLVMTypeOf(slots)), k_vector(k, from, kept->n_slots));
}

/* The slots before which an element of this rank stands. `may_be_free`: there may be free ones. */
static Val stands_before(const Kept *kept, Val rank, Val ranks, Val numbers, bool may_be_free) {
    const Codegen *k = kept->lower->k;
    Val is_lower = k_ult(k, rank, ranks);
    if (!may_be_free) return is_lower;
    return k_or(k, is_lower, k_slt(k, numbers, LLVMConstNull(LLVMTypeOf(numbers))));
}

/* Puts an element into its slot. It leaves the slots as they are if it comes behind all. */
static void insert(Kept *kept, Val rank, Val number, bool may_be_free) {
    const Codegen *k = kept->lower->k;
    Val new[2] = {k_splat(k, rank, kept->n_slots), k_splat(k, number, kept->n_slots)}, next[2];
    for (int i = 0; i < 2; i++) next[i] = moved(kept, kept->slots[i]);
    Val here = stands_before(kept, new[0], kept->slots[0], kept->slots[1], may_be_free);
    Val ahead = stands_before(kept, new[0], next[0], next[1], may_be_free);
    for (int i = 0; i < 2; i++) {
        Val moves = k_select(k, ahead, next[i], new[i]);
        kept->slots[i] = k_select(k, here, moves, kept->slots[i]);
    }
}

/* The ranks of `lanes` elements from `first` on, of which those outside the mask do not exist. */
static Val ranks_at(const Kept *kept, Val first, uint32_t lanes, Val mask) {
    const Kernel *kernel = kept->lower->kernel;
    Point point = point_inside(kept->row);
    point.lanes = lanes;
    point.lane_axis = kernel->first_reduced;
    point.block = INDEX_ANY_START;
    point.mask = mask;
    point.axis[kernel->first_reduced] = first;
    return sort_rank(kept->lower, acc_element(&point, &kernel->reduces.data[0]).value, lanes);
}

/* The first elements, as many as are kept, if the row has them. */
static void insert_first(Kept *kept, Val n) {
    const Codegen *k = kept->lower->k;
    Loop elements = loop_over(k, n, 1);
    loop_carry(k, &elements, kept->slots, 2);
    Val rank = ranks_at(kept, elements.index, 1, NULL);
    insert(kept, rank, k_index_cast(k, elements.index, k->i32), true);
    loop_end(k, &elements);
}

/* Those of a vector of elements whose ranks are below the last one that is kept. */
static void insert_lanes(Kept *kept, Val first, Val mask) {
    const Codegen *k = kept->lower->k;
    Val ranks = ranks_at(kept, first, kept->lanes, mask);
    Val last = k_extract(k, kept->slots[0], kept->n - 1);
    Val pass = k_ult(k, ranks, k_splat(k, last, kept->lanes));
    if (mask) pass = k_and(k, pass, mask);
    Val bits = k_bitcast(k, pass, LLVMIntTypeInContext(k->context, kept->lanes));
    if (kept->lanes < 32) bits = k_zext(k, bits, k->i32);
    LLVMTypeRef type = LLVMTypeOf(bits);
    Val n = k_intrinsic_of(k, "llvm.ctpop", &type, 1, &bits, 1);
    Loop set = loop_over(k, n, 1);
    loop_carry(k, &set, &bits, 1);
    loop_carry(k, &set, kept->slots, 2);
    Val args[] = {bits, k_int(k->i1, 1)};
    Val lane = k_intrinsic_of(k, "llvm.cttz", &type, 1, args, 2);
    Val number = k_add(k, k_index_cast(k, first, k->i32), lane);
    insert(kept, k_extract_at(k, ranks, lane), number, false);
    bits = k_and(k, bits, k_subi(k, bits, 1));
    loop_end(k, &set);
}

/* All others: a mask says which elements of the last vector exist. */
static void insert_others(Kept *kept, Val first, Val n) {
    const Codegen *k = kept->lower->k;
    Val step = lower_index_const(kept->lower, kept->lanes), rest = k_sub(k, n, first);
    Val n_last = k_urem(k, rest, step), end = k_sub(k, n, n_last);
    Loop vectors = loop_begin(k, first, end, kept->lanes);
    loop_carry(k, &vectors, kept->slots, 2);
    insert_lanes(kept, vectors.index, NULL);
    loop_end(k, &vectors);
    insert_lanes(kept, end, cpu_lanes_below(kept->lower, n_last, kept->lanes));
}

static void select_row(Lower *lower, const Point *row) {
    const Codegen *k = lower->k;
    Kept kept = kept_new(lower, row);
    Val n = lower_extent(lower, lower->kernel->first_reduced);
    Val most = lower_index_const(lower, kept.n);
    Val n_first = k_select(k, k_slt(k, n, most), n, most);
    insert_first(&kept, n_first);
    insert_others(&kept, n_first, n);
    Val numbers = cpu_memory_new(lower, DT_I32, kept.n_slots);
    k_store_aligned(k, kept.slots[1], numbers, dtype_bytes(DT_I32));
    Loop places = loop_over(k, n_first, 1);
    sort_store(row, places.index, k_load(k, k->i32, k_gep(k, k->i32, numbers, places.index)));
    loop_end(k, &places);
}

static void sort_whole_row(Lower *lower, Point *row, Val number, Val local) {
    SortRow sort = {.row = row,
                    .thread = lower_index_const(lower, 0),
                    .n_threads = 1,
                    .span_log2 = SORT_WHOLE,
                    .n_chunks = 2};
    sort_place_orders(lower, &sort, number, local);
    sort_row(&sort);
}

void emit_cpu_sort(Lower *lower) {
    const Codegen *k = lower->k;
    Point point = point_new(lower, 1);
    bool selects = sort_selects(lower->kernel, true);
    int64_t n_local = selects ? 0 : sort_local_elems(lower->kernel, lower->variant);
    uint32_t n_words = sort_item_bytes(lower->kernel, true) / dtype_bytes(DT_I64);
    Val local = n_local ? cpu_memory_new(lower, DT_I64, n_words * (2 * n_local + 1)) : NULL;
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    lower_split(lower, units.index, 0, lower->kernel->n_parallel, &point);
    if (selects)
        select_row(lower, &point);
    else
        sort_whole_row(lower, &point, units.index, local);
    loop_end(k, &units);
}
