/* Loads of lanes that are contiguous or a few elements apart, on a CPU. See point_near.h.
 *
 * If lanes are some elements apart, all elements from the first to the last are loaded, and
 * shuffles take one in `stride`.
 *
 * If neighbouring lanes share an element, the vector of the elements is loaded, and a shuffle
 * copies each element to its lanes. Which shuffle depends on how many lanes that share the first
 * element lie before the first lane. If lanes read a few elements again and again, these are loaded
 * and a shuffle repeats them.
 *
 * Conditions that are the same for all lanes choose an address: where they fail, a constant in
 * memory is loaded. So these loads have no mask. A CPU does not prefetch for masked loads: from
 * memory they take 3 to 6 times as long as plain ones, and much longer where the address is no
 * memory. */
#include "codegen/scalar/point_near.h"
#include "codegen/scalar/masked.h"
#include "codegen/scalar/point_index.h"

typedef struct Near {
    Point *point;
    const Scalar *load;
    uint32_t stride;
    Val uniform;    /* the conditions that are the same for all lanes, or NULL */
    bool is_masked; /* whether lanes differ in being loaded */
    bool is_never;  /* a condition fails in the whole piece */
} Near;

/* Whether each condition that differs from lane to lane moves with the elements of the load. */
static bool guard_is_near(const Point *point, GuardId guard, int64_t stride) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    bool holds;
    for (; guard; guard = guard_get(scalars, guard).next) {
        Guard own = guard_get(scalars, guard);
        bool moves = !point_guard_is_known(point, &own, &holds) &&
                     point_on_lanes(point, index_axes(tab, own.index));
        if (moves && index_stride_const(tab, own.index, point->lane_axis) != stride) return false;
    }
    return true;
}

uint32_t point_near_stride(const Point *point, const Scalar *load) {
    const Lower *lower = point->lower;
    if (!lower->k->target->has->cores) return 0;
    if (point_motion(point, load->index) == LANES_CONTIGUOUS) return 1;
    if (point->flat || dtype_bytes(load->dtype) < 4) return 0;
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    int64_t stride = index_stride_const(tab, load->index, point->lane_axis);
    bool is_near = stride > 1 && stride <= INDEX_NEAR_STRIDE;
    return is_near && guard_is_near(point, load->guard, stride) ? (uint32_t)stride : 0;
}

static Val both(const Codegen *k, Val a, Val b) {
    if (!a || !b) return a ? a : b;
    return k_and(k, a, b);
}

/* Whether the condition holds at each of the elements from `first` on. */
static Val range_of_elements(const Near *near, const Guard *g, uint32_t first) {
    Lower *lower = near->point->lower;
    const Codegen *k = lower->k;
    uint32_t lanes = near->point->lanes;
    Val *numbers = arena_array(k->arena, Val, lanes);
    for (uint32_t i = 0; i < lanes; i++) numbers[i] = lower_index_const(lower, first + i);
    Val index = k_splat(k, point_index(near->point, g->index), lanes);
    index = k_add(k, index, LLVMConstVector(numbers, lanes));
    Val lo = k_splat(k, lower_dim(lower, g->lo), lanes);
    Val hi = k_splat(k, lower_dim(lower, g->hi), lanes);
    Val above = k_sge(k, index, lo);
    Val below = k_slt(k, index, hi);
    return k_and(k, above, below);
}

/* Sorts the conditions of the load by whether lanes differ in them. */
static Near near_new(Point *point, const Scalar *load, uint32_t stride) {
    const Codegen *k = point->lower->k;
    const ScalarTab *scalars = point->lower->kernel->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    Near near = {.point = point, .load = load, .stride = stride};
    near.uniform = point->active;
    near.is_masked = point->mask != NULL;
    for (GuardId id = load->guard; id; id = guard_get(scalars, id).next) {
        Guard own = guard_get(scalars, id);
        bool holds;
        if (point_guard_is_known(point, &own, &holds)) {
            near.is_never = near.is_never || !holds;
            continue;
        }
        if (stride > 1 && point_on_lanes(point, index_axes(tab, own.index))) {
            near.is_masked = true;
            continue;
        }
        Val range = point_guard_range(point, &own);
        if (k_is_vector(range))
            near.is_masked = true;
        else
            near.uniform = both(k, near.uniform, range);
    }
    return near;
}

/* A mask of the whole vector that begins with element `first`: it has the elements that are taken
 * by lanes in the point's mask. */
static Val spread_mask(const Near *near, uint32_t first) {
    const Codegen *k = near->point->lower->k;
    uint32_t lanes = near->point->lanes;
    Val mask = near->point->mask, *from = arena_array(k->arena, Val, lanes);
    if (!mask || near->stride == 1) return mask;
    for (uint32_t i = 0; i < lanes; i++) from[i] = k_i32(k, (first + i) / near->stride);
    return k_shuffle(k, mask, LLVMGetPoison(LLVMTypeOf(mask)), LLVMConstVector(from, lanes));
}

/* The elements from `first` on that lanes need, or all elements; constants. */
static Val needed_mask(const Near *near, uint32_t first) {
    const Codegen *k = near->point->lower->k;
    uint32_t lanes = near->point->lanes, stride = near->stride;
    Val *needed = arena_array(k->arena, Val, lanes);
    if (stride == 1) return NULL;
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t element = first + i;
        bool is_needed =
            near->point->mask ? element % stride == 0 : element <= (lanes - 1) * stride;
        needed[i] = LLVMConstInt(k->i1, is_needed, 0);
    }
    return LLVMConstVector(needed, lanes);
}

static Val part_mask(const Near *near, uint32_t first) {
    Point *point = near->point;
    const Codegen *k = point->lower->k;
    const ScalarTab *scalars = point->lower->kernel->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    Val spread = spread_mask(near, first), mask = both(k, spread, needed_mask(near, first));
    for (GuardId id = near->load->guard; id; id = guard_get(scalars, id).next) {
        Guard own = guard_get(scalars, id);
        bool holds;
        if (point_guard_is_known(point, &own, &holds) ||
            !point_on_lanes(point, index_axes(tab, own.index)))
            continue;
        Val range = near->stride > 1 ? range_of_elements(near, &own, first)
                                     : point_guard_range(point, &own);
        if (k_is_vector(range)) mask = both(k, mask, range);
    }
    return mask;
}

Val point_load_lanes(const Lower *lower, uint32_t arg, Dtype dtype, uint32_t lanes, Val pointer,
                     Val mask) {
    const Codegen *k = lower->k;
    LLVMTypeRef type = k_memory_type(k, dtype, lanes);
    return mask ? masked_load(k, pointer, dtype_bytes(dtype), mask, LLVMConstNull(type))
                : point_plain_load(lower, arg, type, pointer, dtype_bytes(dtype));
}

/* Memory that holds the vector `times` times. */
static Val constant_memory(const Lower *lower, Val vector, uint32_t times) {
    const Codegen *k = lower->k;
    Val *copies = arena_array(k->arena, Val, times);
    for (uint32_t i = 0; i < times; i++) copies[i] = vector;
    return k_constant_array(k, copies, times, "outside");
}

/* The element that part `part` begins with. The last part ends with the last lane, so that it reads
 * nothing behind it. */
static uint32_t part_begin(const Near *near, uint32_t part) {
    uint32_t lanes = near->point->lanes;
    bool is_last = part == near->stride - 1;
    return is_last && !near->is_masked ? (lanes - 1) * near->stride + 1 - lanes : part * lanes;
}

static Val load_part(const Near *near, uint32_t arg, Val first, uint32_t begin, Val outside) {
    const Lower *lower = near->point->lower;
    const Codegen *k = lower->k;
    uint32_t bytes = dtype_bytes(near->load->dtype);
    Val pointer = first;
    if (begin)
        pointer = k_gep(k, k_memory_type(k, near->load->dtype, 1), first, k_int(k->i64, begin));
    if (near->is_masked) return masked_load(k, pointer, bytes, part_mask(near, begin), outside);
    LLVMTypeRef type = k_memory_type(k, near->load->dtype, near->point->lanes);
    return point_plain_load(lower, arg, type, pointer, bytes);
}

/* Takes the lanes that the elements `own`, from `begin` on, have. */
static Val take_lanes(const Near *near, Val all, Val own, uint32_t begin) {
    const Codegen *k = near->point->lower->k;
    uint32_t lanes = near->point->lanes;
    Val *taken = arena_array(k->arena, Val, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t element = i * near->stride;
        bool is_own = element >= begin && element < begin + lanes;
        taken[i] = k_i32(k, is_own ? lanes + element - begin : i);
    }
    return k_shuffle(k, all, own, LLVMConstVector(taken, lanes));
}

Val point_load_near(Point *point, const Scalar *load, uint32_t arg, uint32_t stride, Val outside) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    LLVMTypeRef type = k_memory_type(k, load->dtype, point->lanes);
    outside = outside ? k_splat(k, outside, point->lanes) : LLVMConstNull(type);
    Near near = near_new(point, load, stride);
    if (near.is_never) return outside;
    Val first = point_element_pointer(lower, arg, point_index(point, load->index));
    if (near.uniform)
        first = k_select(k, near.uniform, first, constant_memory(lower, outside, stride));
    if (stride == 1) return load_part(&near, arg, first, 0, outside);
    Val all = LLVMGetPoison(type);
    for (uint32_t part = 0; part < stride; part++) {
        uint32_t begin = part_begin(&near, part);
        Val own = load_part(&near, arg, first, begin, outside);
        all = take_lanes(&near, all, own, begin);
    }
    return all;
}

uint32_t point_shared_lanes(const Point *point, const Scalar *load) {
    const Lower *lower = point->lower;
    if (!lower->k->target->has->cores || point->flat || dtype_bytes(load->dtype) < 4) return 0;
    return index_lanes_shared(scalartab_indices(lower->kernel->scalars), load->index,
                              point->lane_axis);
}

/* The dividend of the load's index: `n` of its values share an element. */
static IndexId shared_dividend(const Point *point, const Scalar *load) {
    const IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    IndexExpr expr = index_expr(tab, load->index);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom.axes >> point->lane_axis & 1) return atom.operand;
    }
    ice(point->lower->k->arena, "no term of the load moves with the lanes");
}

/* Marks each element that a marked lane of `mask` takes. `n` neighbouring lanes take one element;
 * `first` of the lanes that take the first element lie before lane 0. */
static Val shared_mask(const Point *point, Val mask, uint32_t n, uint32_t first) {
    const Codegen *k = point->lower->k;
    uint32_t lanes = point->lanes;
    Val *from = arena_array(k->arena, Val, lanes), all = NULL;
    Val none = LLVMConstNull(k_vector_of(k->i1, lanes));
    if (!mask) mask = LLVMConstNot(none);
    for (uint32_t place = 0; place < n; place++) {
        for (uint32_t i = 0; i < lanes; i++) {
            uint32_t lane = i * n + place - first; /* wraps around before lane 0 */
            from[i] = k_i32(k, lane < lanes ? lane : lanes);
        }
        Val own = k_shuffle(k, mask, none, LLVMConstVector(from, lanes));
        all = all ? k_or(k, all, own) : own;
    }
    return all;
}

static Val spread_shared(const Point *point, Val elements, uint32_t n, uint32_t first) {
    const Codegen *k = point->lower->k;
    Val *from = arena_array(k->arena, Val, point->lanes);
    for (uint32_t i = 0; i < point->lanes; i++) from[i] = k_i32(k, (i + first) / n);
    return k_shuffle(k, elements, elements, LLVMConstVector(from, point->lanes));
}

Val point_load_shared(Point *point, const Scalar *load, uint32_t arg, uint32_t n, Val condition) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    uint32_t lanes = point->lanes, bytes = dtype_bytes(load->dtype);
    IndexId dividend = shared_dividend(point, load);
    bool is_known = lanes % n == 0 && point_is_multiple(point, dividend, n);
    Val place = NULL, mask = NULL, all = NULL;
    if (condition) condition = k_splat(k, condition, lanes);
    if (!is_known) place = k_uremi(k, point_index(point, dividend), n);
    for (uint32_t first = 0; first < (is_known ? 1 : n); first++) {
        Val own = shared_mask(point, condition, n, first);
        Val is_own = place ? k_eqi(k, place, first) : NULL;
        mask = mask ? k_select(k, is_own, own, mask) : own;
    }
    Val pointer = point_element_pointer(lower, arg, point_index_at(point, load->index, false));
    Val zero = LLVMConstNull(k_memory_type(k, load->dtype, lanes));
    Val elements = masked_load(k, pointer, bytes, mask, zero);
    for (uint32_t first = 0; first < (is_known ? 1 : n); first++) {
        Val own = spread_shared(point, elements, n, first);
        all = all ? k_select(k, k_eqi(k, place, first), own, all) : own;
    }
    return all;
}

Val point_load_repeated(Point *point, const Scalar *load, uint32_t arg, uint32_t n) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    Val pointer = point_element_pointer(lower, arg, point_index_at(point, load->index, false));
    Val *from = arena_array(k->arena, Val, point->lanes);
    for (uint32_t i = 0; i < point->lanes; i++) from[i] = k_i32(k, i % n);
    Val own = point_plain_load(lower, arg, k_memory_type(k, load->dtype, n), pointer,
                               dtype_bytes(load->dtype));
    return k_shuffle(k, own, own, LLVMConstVector(from, point->lanes));
}
