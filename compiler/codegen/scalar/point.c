/* Emitting scalar programs. See point.h. */
#include "codegen/scalar/masked.h"
#include "codegen/scalar/point_fma.h"
#include "codegen/scalar/point_index.h"
#include "codegen/scalar/point_narrow.h"
#include "codegen/scalar/point_near.h"
#include "codegen/scalar/point_quotient.h"

#include <string.h>

/* Points. */

Point point_new(Lower *lower, uint32_t lanes) {
    Arena *arena = lower->k->arena;
    uint32_t n_slots = lower->kernel->reduces.n;
    Point point = {.lower = lower, .lanes = lanes, .lane_axis = lower->lane_axis};
    point.results = arena_array(arena, Val, n_slots);
    point.extremes = arena_array(arena, Val, n_slots);
    point.values = arena_array(arena, Val, scalar_count(lower->kernel->scalars) + 1);
    return point;
}

Point point_inside(const Point *outer) {
    Point point = *outer;
    point.values =
        arena_copy(outer->lower->k->arena, outer->values,
                   (scalar_count(outer->lower->kernel->scalars) + 1) * sizeof *point.values);
    return point;
}

/* Loads. */

static Val and_opt(const Codegen *k, Val a, Val b) {
    if (!a || !b) return a ? a : b;
    return k_and(k, a, b);
}

/* A constant is added to the address last. Then addresses a constant distance apart share one
 * pointer, and their accesses have constant offsets. LLVM could not see this through the extension
 * of a 32-bit index. */
Val point_element_pointer(const Lower *lower, uint32_t arg, Val address) {
    const Codegen *k = lower->k;
    Dtype dtype = lower->plan->buffers.data[lower->kernel->args.data[arg]].dtype;
    LLVMTypeRef element = k_memory_type(k, dtype, 1);
    int64_t constant;
    address = point_without_constant(address, &constant);
    if (LLVMTypeOf(address) == k->i32) address = k_sext(k, address, k->i64);
    Val pointer = k_gep(k, element, lower->pointers[arg], address);
    Val ahead = k_int(k->i64, constant);
    return constant ? k_gep(k, element, pointer, ahead) : pointer;
}

Val point_pointer(Point *point, const Scalar *load) {
    Val address = point_index_at(point, load->index, false);
    return point_element_pointer(point->lower, lower_arg(point->lower, load->buffer), address);
}

Val point_plain_load(const Lower *lower, uint32_t arg, LLVMTypeRef type, Val pointer,
                     uint32_t align_bytes) {
    Val load = k_load_aligned(lower->k, type, pointer, align_bytes);
    if (!lower->may_change[arg])
        LLVMSetMetadata(load, lower->k->invariant_kind, lower->k->invariant);
    return load;
}

/* Loads one element; where the condition fails, element 0 instead. */
static Val load_one(const Lower *lower, uint32_t arg, Dtype dtype, Val address, Val condition) {
    const Codegen *k = lower->k;
    if (condition) address = k_select(k, condition, address, lower_index_const(lower, 0));
    Val pointer = point_element_pointer(lower, arg, address);
    return point_plain_load(lower, arg, k_memory_type(k, dtype, 1), pointer, dtype_bytes(dtype));
}

static Val load_each_lane(Point *point, const Scalar *s, uint32_t arg, Val condition) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    Val addresses = point_index_at(point, s->index, true);
    Val all = LLVMGetPoison(k_memory_type(k, s->dtype, point->lanes));
    for (uint32_t i = 0; i < point->lanes; i++) {
        Val at = k_i32(k, i);
        Val address = k_extract_at(k, addresses, at);
        Val own = condition;
        if (condition && k_is_vector(condition)) own = k_extract_at(k, condition, at);
        Val element = load_one(lower, arg, s->dtype, address, own);
        all = k_insert_at(k, all, element, at);
    }
    return all;
}

/* The alignment in bytes that a contiguous vector access at this index is known to have, at
 * most. */
static uint32_t access_align(const Point *point, IndexId index, uint32_t arg, Dtype dtype) {
    const Lower *lower = point->lower;
    uint32_t bytes = dtype_bytes(dtype), lanes = point->lanes;
    uint32_t align = (uint32_t)predicate_alignment(&lower->variant->predicate, arg);
    if (align <= bytes) return bytes;
    while (lanes > 1 && !point_is_multiple(point, index, lanes)) lanes /= 2;
    return lanes * bytes < align ? lanes * bytes : align;
}

/* Loads contiguous elements in one access, which LLVM splits where it is not aligned. Where the
 * uniform condition fails, it loads the elements at 0 instead. */
static Val load_vector(Point *point, const Scalar *s, uint32_t arg, uint32_t align, Val condition) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    Val address = point_index_at(point, s->index, false);
    if (condition) address = k_select(k, condition, address, lower_index_const(lower, 0));
    LLVMTypeRef type = k_memory_type(k, s->dtype, point->lanes);
    Val pointer = point_element_pointer(lower, arg, address);
    uint32_t n_bytes = point->lanes * dtype_bytes(s->dtype);
    bool is_words = dtype_bytes(s->dtype) > 1; /* splitting a vector of bools is not worth it */
    bool is_whole = is_words && align == n_bytes && (n_bytes == 8 || n_bytes == 16);
    return (lower->read_once >> arg & 1) && is_whole && k->target->has_load_hints
               ? k_load_hinted(k, type, n_bytes, pointer, lower->may_change[arg],
                               lower->load_policy)
               : point_plain_load(lower, arg, type, pointer, align);
}

/* GPU: whether every tensor with elements has at least as many as a vector has lanes. Then a vector
 * load at 0 is in bounds when the guard fails. The caller's tensor may be smaller; workspace memory
 * is padded. */
static bool begins_with_lanes(const Point *point, uint32_t arg) {
    const Kernel *kernel = point->lower->kernel;
    const Buffer *buffer = &point->lower->plan->buffers.data[kernel->args.data[arg]];
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId n = shape_n_elems(indextab_dims(tab), &buffer->shape);
    return buffer->kind == BUFFER_TEMP || dim_lo(indextab_dims(tab), n) >= point->lanes ||
           index_is_multiple(tab, index_dim(tab, n), NO_AXIS, point->lanes);
}

/* Whether the lane axis has elements whatever the extents are. */
static bool has_lanes(const Point *point) {
    const Kernel *kernel = point->lower->kernel;
    DimId n = kernel_axis_extent(kernel, point->lane_axis);
    return dim_lo(indextab_dims(scalartab_indices(kernel->scalars)), n) > 0;
}

/* The address of an element in a buffer in shared memory. A GEMM's tile is indexed by the kernel's
 * axes. The rows of a row kernel have the layout of global memory, so the element's offset is its
 * address less that of the tile's first element. */
static Val shared_pointer(Point *point, uint32_t arg, IndexId index, Dtype dtype, Val condition) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    Val pitch = lower_dim(lower, lower->smem[arg].pitch), at;
    const BlockTile *tile = lower->tile;
    if (form_info(kernel->form)->multiplies) {
        Val m0 = k_index_cast(k, tile->m0, lower->index_type);
        Val n0 = k_index_cast(k, tile->n0, lower->index_type);
        Val row = k_sub(k, point->axis[gemm_axis_m(kernel)], m0);
        Val column = k_sub(k, point->axis[gemm_axis_n(kernel)], n0);
        at = k_add(k, k_mul(k, row, pitch), column);
    } else {
        Val first = k_mul(k, k_index_cast(k, tile->first_row, lower->index_type), pitch);
        at = k_sub(k, point_index_at(point, index, false), first);
    }
    at = k_index_cast(k, at, k->i32);
    if (condition) at = k_select(k, condition, at, k_i32(k, 0));
    return k_gep(k, k_memory_type(k, dtype, 1), lower->smem[arg].base, at);
}

static uint32_t shared_lanes(const Point *point, uint32_t axes) {
    return point_on_lanes(point, axes) ? point->lanes : 1;
}

static Val load_from_shared(Point *point, const Scalar *s, uint32_t arg) {
    const Codegen *k = point->lower->k;
    uint32_t lanes = shared_lanes(point, s->axes);
    Val pointer = shared_pointer(point, arg, s->index, s->dtype, point->active);
    return k_load_aligned(k, k_memory_type(k, s->dtype, lanes), pointer,
                          lanes * dtype_bytes(s->dtype));
}

static bool is_off_memory(const Lower *lower, uint32_t arg) {
    return lower->smem && lower->smem[arg].base;
}

static Val load_value(Point *point, const Scalar *s) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    uint32_t arg = lower_arg(lower, s->buffer);
    if (is_off_memory(lower, arg)) return load_from_shared(point, s, arg);
    uint32_t stride = point_on_lanes(point, s->axes) ? point_near_stride(point, s) : 0;
    if (stride) return point_load_near(point, s, arg, stride, NULL);
    Val guard = s->guard ? point_guard(point, s->guard) : NULL;
    if (guard && LLVMIsAConstantInt(guard)) guard = LLVMConstIntGetZExtValue(guard) ? NULL : guard;
    Val condition = point->active;
    if (guard && k_is_vector(guard) && condition) condition = k_splat(k, condition, point->lanes);
    condition = and_opt(k, condition, guard);
    bool is_shared =
        k->target->has->cores && point_is_shared(point, s->index) && !(guard && k_is_vector(guard));
    if (is_shared || !point_on_lanes(point, s->axes))
        return load_one(lower, arg, s->dtype, point_index_at(point, s->index, false), condition);
    if (point->mask && condition) condition = k_splat(k, condition, point->lanes);
    condition = and_opt(k, condition, point->mask);
    uint32_t n_shared = point_shared_lanes(point, s);
    if (n_shared) return point_load_shared(point, s, arg, n_shared, condition);
    uint32_t n_repeated = condition ? 0 : point_repeated_lanes(point, s->index);
    if (n_repeated) return point_load_repeated(point, s, arg, n_repeated);
    if (point_motion(point, s->index) != LANES_CONTIGUOUS)
        return load_each_lane(point, s, arg, condition);
    uint32_t align = access_align(point, s->index, arg, s->dtype);
    bool is_vector = !condition || (!k_is_vector(condition) && ((!guard && has_lanes(point)) ||
                                                                begins_with_lanes(point, arg)));
    return is_vector ? load_vector(point, s, arg, align, condition)
                     : load_each_lane(point, s, arg, condition);
}

Val point_loaded(Point *point, ScalarId load) {
    return load_value(point, scalar_get(point->lower->kernel->scalars, load));
}

/* Values. */

static Val from_memory(const Codegen *k, Dtype dtype, Val value) {
    if (!dtype_is_bool(dtype)) return value;
    return k_ne(k, value, LLVMConstNull(LLVMTypeOf(value)));
}

/* Whether each condition of `some` is one of `all`. */
static bool has_conditions(const ScalarTab *scalars, GuardId all, GuardId some) {
    for (; some; some = guard_get(scalars, some).next) {
        Guard wanted = guard_get(scalars, some);
        GuardId id = all;
        for (; id; id = guard_get(scalars, id).next) {
            Guard own = guard_get(scalars, id);
            if (own.index == wanted.index && own.lo == wanted.lo && own.hi == wanted.hi) break;
        }
        if (!id) return false;
    }
    return true;
}

/* A load inside a guard and a constant outside, as of padding, in one access; NULL: it has another
 * form. The load may have more conditions: where they fail, nothing reads the select. */
static Val guarded_load(Point *point, const Scalar *select) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    const Scalar *inside = scalar_get(scalars, select->args[0]);
    const Scalar *load = scalar_get(scalars, select->args[1]);
    bool is_guarded = inside->kind == SCALAR_INSIDE && load->kind == SCALAR_LOAD &&
                      has_conditions(scalars, load->guard, inside->guard) &&
                      !dtype_is_bool(load->dtype) &&
                      scalar_get(scalars, select->args[2])->kind == SCALAR_CONST;
    if (!is_guarded || !point_on_lanes(point, load->axes)) return NULL;
    uint32_t stride = point_near_stride(point, load);
    if (!stride) return NULL;
    Val outside = point_value(point, select->args[2]);
    return point_load_near(point, load, lower_arg(point->lower, load->buffer), stride, outside);
}

static Val prim_value(Point *point, const Scalar *s) {
    Codegen *k = point->lower->k;
    const PrimInfo *info = prim_info(s->prim);
    Val args[3] = {NULL}, narrow = point_narrow_compared(point, s);
    if (narrow) return narrow;
    Val contracted = point_contracted(point, s);
    if (contracted) return contracted;
    bool any_vector = false;
    if (s->prim == PRIM_SELECT) {
        Val guarded = guarded_load(point, s);
        if (guarded) return guarded;
        Val condition = point_value(point, s->args[0]);
        if (LLVMIsAConstantInt(condition))
            return point_value(point, s->args[LLVMConstIntGetZExtValue(condition) ? 1 : 2]);
    }
    for (uint32_t i = 0; i < info->arity; i++) {
        args[i] = point_value(point, s->args[i]);
        any_vector = any_vector || k_is_vector(args[i]);
    }
    Dtype operand = scalar_get(point->lower->kernel->scalars, s->args[info->arity - 1])->dtype;
    Val quotient = point_quotient(point->lower, s, args[0], args[1]);
    if (quotient) return quotient;
    for (uint32_t i = 0; i < info->arity && any_vector; i++)
        args[i] = k_splat(k, args[i], point->lanes);
    if (s->prim == PRIM_EXP && point_is_at_most_0(point->lower->kernel, s->args[0]))
        return math_unary(k, "exp_below_0", args[0]);
    return math_prim(k, s->prim, operand, args[0], args[1], args[2]);
}

static Val index_value_i32(Point *point, const Scalar *s) {
    Lower *lower = point->lower;
    bool per_lane = !point_is_shared(point, s->index);
    Val index = point_index_at(point, s->index, per_lane);
    if (lower->index_type == lower->k->i32) return index;
    return k_trunc(lower->k, index, k_vector_of(lower->k->i32, per_lane ? point->lanes : 1));
}

static Val build_value(Point *point, const Scalar *s) {
    Codegen *k = point->lower->k;
    Val value;
    switch (s->kind) {
    case SCALAR_CONST:
        if (dtype_is_int(s->dtype)) return k_whole(k, s->dtype, s->whole);
        return k_number(k, s->dtype, s->number);
    case SCALAR_GIVEN:
        return point->lower->given[s->slot];
    case SCALAR_LOAD:
        return from_memory(k, s->dtype, load_value(point, s));
    case SCALAR_INDEX:
        return index_value_i32(point, s);
    case SCALAR_INSIDE:
        return point_guard(point, s->guard);
    case SCALAR_STAGE:
        return point->results[s->slot];
    case SCALAR_EXTREME:
        return point->extremes[s->slot];
    case SCALAR_PRIM:
        return prim_value(point, s);
    case SCALAR_BITCAST:
        value = point_value(point, s->args[0]);
        return bitcast_value(k, value, scalar_get(point->lower->kernel->scalars, s->args[0])->dtype,
                             s->dtype);
    case SCALAR_CVT:
        value = point_narrow_rounded(point, s);
        if (value) return value;
        value = point_value(point, s->args[0]);
        return convert_value(k, value, scalar_get(point->lower->kernel->scalars, s->args[0])->dtype,
                             s->dtype);
    }
    ice(k->arena, "scalar of unknown kind");
}

Val point_value(Point *point, ScalarId id) {
    if (!point->values[id])
        point->values[id] = build_value(point, scalar_get(point->lower->kernel->scalars, id));
    return point->values[id];
}

Val point_lanes(Point *point, ScalarId id) {
    return k_splat(point->lower->k, point_value(point, id), point->lanes);
}

void point_prepare(Point *point, const ScalarId *roots, uint32_t n_roots, uint32_t inner_axes) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    uint32_t n = scalar_count(scalars);
    const bool *wanted =
        kernel_needed_scalars(point->lower->k->arena, point->lower->kernel, roots, n_roots);
    for (ScalarId id = 1; id <= n; id++) {
        const Scalar *s = scalar_get(scalars, id);
        bool ready = s->kind != SCALAR_STAGE || point->results[s->slot];
        if (wanted[id] && !(s->axes & inner_axes) && ready) point_value(point, id);
    }
}

/* Whether the load's address or guard depends on a reduction's result. */
static bool waits_for_results(const Point *point, ScalarId load) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    const bool *needed =
        kernel_needed_scalars(point->lower->k->arena, point->lower->kernel, &load, 1);
    for (ScalarId id = 1; id < load; id++) {
        ScalarKind kind = scalar_get(scalars, id)->kind;
        if (needed[id] && (kind == SCALAR_STAGE || kind == SCALAR_EXTREME)) return true;
    }
    return false;
}

uint32_t point_list_loads(const Point *point, const ScalarId *roots, uint32_t n_roots,
                          ScalarId *loads, uint32_t most) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    uint32_t n = scalar_count(scalars), n_loads = 0;
    const bool *wanted =
        kernel_needed_scalars(point->lower->k->arena, point->lower->kernel, roots, n_roots);
    for (ScalarId id = 1; id <= n && n_loads < most; id++)
        if (wanted[id] && !point->values[id] && scalar_get(scalars, id)->kind == SCALAR_LOAD &&
            !waits_for_results(point, id))
            loads[n_loads++] = id;
    return n_loads;
}

/* Stores. */

static Val to_memory(const Codegen *k, Dtype dtype, Val value, uint32_t lanes) {
    if (!dtype_is_bool(dtype)) return value;
    return k_zext(k, value, k_memory_type(k, DT_BOOL, lanes));
}

static void store_one(const Lower *lower, uint32_t arg, Val value, Val address, uint32_t bytes) {
    Val pointer = point_element_pointer(lower, arg, address);
    k_store_aligned(lower->k, value, pointer, bytes);
}

/* A mask's known run of active lanes, side by side. n 0: the mask is unknown or has another
 * form. */
typedef struct LaneRun {
    uint32_t first, n;
} LaneRun;

static LaneRun known_run(const Codegen *k, Val mask, uint32_t lanes) {
    LaneRun run = {0};
    for (uint32_t i = 0; i < lanes && LLVMIsConstant(mask); i++) {
        Val lane = LLVMGetAggregateElement(mask, i);
        if (lane == LLVMConstNull(k->i1)) continue;
        bool goes_on = run.n == 0 || i == run.first + run.n;
        if (!goes_on || !lane || !LLVMIsAConstantInt(lane)) return (LaneRun){0};
        if (run.n++ == 0) run.first = i;
    }
    return run;
}

static Val lanes_of_run(const Codegen *k, Val value, LaneRun run) {
    if (run.n == 1) return k_extract(k, value, run.first);
    Val *lanes = arena_array(k->arena, Val, run.n);
    for (uint32_t i = 0; i < run.n; i++) lanes[i] = k_i32(k, run.first + i);
    Val poison = LLVMGetPoison(LLVMTypeOf(value));
    return k_shuffle(k, value, poison, LLVMConstVector(lanes, run.n));
}

/* Known lanes are stored without a mask. A CPU counts a masked store as a store of all lanes. A
 * load of the neighbouring elements, such as the next row of an in-place store, then waits for it:
 * 13 ns instead of 1 on a Xeon. Also, LLVM 22 splits a masked store of one known lane of a
 * truncated value wrongly for AVX-512, and writes the untruncated value. */
static void store_masked(Point *point, const Store *store, uint32_t arg, Val value,
                         uint32_t bytes) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    Val address = point_index_at(point, store->address, false);
    LaneRun run = known_run(k, point->mask, point->lanes);
    if (run.n) {
        value = lanes_of_run(k, value, run);
        address = k_addi(k, address, run.first);
        store_one(lower, arg, value, address, bytes);
        return;
    }
    Val pointer = point_element_pointer(lower, arg, address);
    masked_store(k, pointer, bytes, point->mask, value);
}

/* The pointers of lanes that are evenly apart on a CPU: constants after that of lane 0. False: the
 * lanes are not. */
static bool even_pointers(Point *point, const Store *store, uint32_t arg, Val *pointers) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    int64_t stride = index_stride_const(tab, store->address, point->lane_axis);
    if (!k->target->has->cores || point->flat || !stride) return false;
    LLVMTypeRef type = k_memory_type(k, lower->plan->buffers.data[store->buffer].dtype, 1);
    Val first = point_element_pointer(lower, arg, point_index_at(point, store->address, false));
    for (uint32_t i = 0; i < point->lanes; i++)
        pointers[i] = k_gep(k, type, first, k_int(k->i64, i * stride));
    return true;
}

static void store_each_lane(Point *point, const Store *store, uint32_t arg, Val value,
                            uint32_t bytes) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    Val *pointers = arena_array(k->arena, Val, point->lanes), addresses = NULL;
    bool are_even = even_pointers(point, store, arg, pointers);
    if (!are_even) addresses = point_index_at(point, store->address, true);
    for (uint32_t i = 0; i < point->lanes; i++) {
        Val at = k_i32(k, i);
        Val element = k_extract_at(k, value, at);
        Val address = are_even ? NULL : k_extract_at(k, addresses, at);
        If exists = if_begin(k, point->mask ? k_extract_at(k, point->mask, at) : NULL);
        if (are_even)
            k_store_aligned(k, element, pointers[i], bytes);
        else
            store_one(lower, arg, element, address, bytes);
        if_end(k, &exists);
    }
}

static void store_to_shared(Point *point, const Store *store, uint32_t arg, Dtype dtype) {
    const Codegen *k = point->lower->k;
    const IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    uint32_t lanes = shared_lanes(point, index_axes(tab, store->address));
    Val value = k_splat(k, point_value(point, store->value), lanes);
    value = to_memory(k, dtype, value, lanes);
    Val pointer = shared_pointer(point, arg, store->address, dtype, NULL);
    k_store_aligned(k, value, pointer, lanes * dtype_bytes(dtype));
}

/* Stores all lanes except those outside the point's mask. */
static void store_lanes(Point *point, const Store *store, uint32_t arg, Val value) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    uint32_t align = access_align(point, store->address, arg, dtype);
    if (point_motion(point, store->address) != LANES_CONTIGUOUS ||
        (point->mask && !k->target->has->cores)) {
        store_each_lane(point, store, arg, value, dtype_bytes(dtype));
    } else if (point->mask) {
        store_masked(point, store, arg, value, dtype_bytes(dtype));
    } else {
        Val pointer =
            point_element_pointer(lower, arg, point_index_at(point, store->address, false));
        k_store_aligned(k, value, pointer, align);
    }
}

/* GPU: stores the lanes whose guard holds. If all lanes hold, which is tested, one plain vector
 * access stores them. */
static void store_inside(Point *point, const Store *store, uint32_t arg, Val value, Val inside) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    LLVMTypeRef type = LLVMTypeOf(inside);
    Point some = *point;
    some.mask = and_opt(k, point->mask, inside);
    If rest = {NULL};
    if (!point->mask && point_motion(point, store->address) == LANES_CONTIGUOUS) {
        Val all = k_intrinsic_of(k, "llvm.vector.reduce.and", &type, 1, &inside, 1);
        If whole = if_begin(k, all);
        store_lanes(point, store, arg, value);
        if_end(k, &whole);
        rest = if_begin(k, k_not(k, all));
    }
    store_lanes(&some, store, arg, value);
    if (rest.after) if_end(k, &rest);
}

/* Stores the lanes inside, of which there is one: a whole vector without a mask. */
static void store_some(Point *point, const Store *store, uint32_t arg, Val lanes) {
    Codegen *k = point->lower->k;
    Dtype dtype = point->lower->plan->buffers.data[store->buffer].dtype;
    LLVMTypeRef type = LLVMTypeOf(lanes);
    Val value = to_memory(k, dtype, point_lanes(point, store->value), point->lanes);
    Val all = k_intrinsic_of(k, "llvm.vector.reduce.and", &type, 1, &lanes, 1);
    Point whole = point_inside(point), part = point_inside(point);
    whole.mask = NULL;
    part.mask = lanes;
    If is_whole = if_begin(k, all);
    store_lanes(&whole, store, arg, value);
    if_end(k, &is_whole);
    If is_part = if_begin(k, k_not(k, all));
    store_lanes(&part, store, arg, value);
    if_end(k, &is_part);
}

/* A CPU computes the values that only this store needs where a lane is inside. */
static void store_on_core(Point *point, const Store *store) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    uint32_t arg = lower_arg(lower, store->buffer);
    Val of_lanes = NULL, same = point_guard_split(point, store->guard, &of_lanes);
    If within = if_begin(k, same);
    Point own = point_inside(point);
    if (of_lanes && lower->pointers[arg]) {
        LLVMTypeRef type = LLVMTypeOf(of_lanes);
        Val lanes = and_opt(k, point->mask, of_lanes);
        Val any = k_intrinsic_of(k, "llvm.vector.reduce.or", &type, 1, &lanes, 1);
        If some = if_begin(k, any);
        store_some(&own, store, arg, lanes);
        if_end(k, &some);
    } else {
        Store all = *store;
        all.guard = GUARD_NONE;
        point_store(&own, &all);
    }
    if_end(k, &within);
}

/* A guard that is uniform over the lanes becomes a branch. Values that only this store needs are
 * computed inside it. */
static void store_guarded(Point *point, const Store *store) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    if (k->target->has->cores) {
        store_on_core(point, store);
        return;
    }
    uint32_t arg = lower_arg(lower, store->buffer);
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    Val inside = point_guard(point, store->guard);
    if (k_is_vector(inside)) {
        Val value = point_lanes(point, store->value);
        store_inside(point, store, arg, to_memory(k, dtype, value, point->lanes), inside);
        return;
    }
    Store all = *store;
    all.guard = GUARD_NONE;
    If within = if_begin(k, inside);
    Point own = point_inside(point);
    point_store(&own, &all);
    if_end(k, &within);
}

void point_store(Point *point, const Store *store) {
    Lower *lower = point->lower;
    Codegen *k = lower->k;
    uint32_t arg = lower_arg(lower, store->buffer);
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    if (store->guard) {
        store_guarded(point, store);
        return;
    }
    if (is_off_memory(lower, arg)) {
        store_to_shared(point, store, arg, dtype);
        return;
    }
    if (!lower->pointers[arg]) return;
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    if (!point_on_lanes(point, index_axes(tab, store->address))) {
        Val value = point_value(point, store->value);
        /* The other axes are beside an axis of no elements and have no part in an address. No
         * element of this store exists. */
        if (k_is_vector(value)) value = k_extract(k, value, 0);
        value = to_memory(k, dtype, value, 1);
        store_one(lower, arg, value, point_index_at(point, store->address, false),
                  dtype_bytes(dtype));
        return;
    }
    Val value = point_lanes(point, store->value);
    store_lanes(point, store, arg, to_memory(k, dtype, value, point->lanes));
}

void point_take_passed(Point *point, Point *maker) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    const Kernel *kernel = maker->lower->kernel;
    for (uint32_t i = 0; i < kernel->row_stores.n; i++) {
        const Store *store = &kernel->row_stores.data[i];
        for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
            const Scalar *s = scalar_get(scalars, id);
            if (s->kind == SCALAR_LOAD && s->buffer == store->buffer)
                point->values[id] = point_lanes(maker, store->value);
        }
    }
}

/* Values that several stores need are computed before the guards, if any store has one. */
static void prepare_shared(Point *point, const Store *stores, uint32_t n) {
    const Kernel *kernel = point->lower->kernel;
    const Stage stage = {.stores = {.data = (Store *)stores, .n = n}};
    bool has_guards = false;
    for (uint32_t i = 0; i < n; i++) has_guards = has_guards || stores[i].guard;
    if (!has_guards) return;
    const ScalarNeed *needs = stage_needs(point->lower->k->arena, kernel, &stage);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (needs[id].n > 1) point_value(point, id);
}

void point_prepare_stores(Point *point, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!stores[i].guard) point_value(point, stores[i].value);
    prepare_shared(point, stores, n);
}

void point_store_all(Point *point, const Store *stores, uint32_t n) {
    prepare_shared(point, stores, n);
    for (uint32_t i = 0; i < n; i++) point_store(point, &stores[i]);
}
