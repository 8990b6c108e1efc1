/* Emitting scalar programs. See point.h. */
#include "codegen/scalar/point_fma.h"
#include "codegen/scalar/point_index.h"
#include "codegen/scalar/point_narrow.h"
#include "codegen/scalar/point_quotient.h"

#include <string.h>

/* Points. */

Point point_new(Lower *lower, uint32_t lanes) {
    Arena *arena = lower->unit->arena;
    uint32_t n_slots = lower->kernel->reduces.n;
    Point point = {.lower = lower, .lanes = lanes, .lane_axis = lower->lane_axis};
    point.results = arena_array(arena, LLVMValueRef, n_slots);
    point.extremes = arena_array(arena, LLVMValueRef, n_slots);
    point.values = arena_array(arena, LLVMValueRef, scalar_count(lower->kernel->scalars) + 1);
    return point;
}

Point point_inside(const Point *outer) {
    Point point = *outer;
    point.values =
        arena_copy(outer->lower->unit->arena, outer->values,
                   (scalar_count(outer->lower->kernel->scalars) + 1) * sizeof *point.values);
    return point;
}

/* Loads. */

static LLVMValueRef and_opt(const Unit *unit, LLVMValueRef a, LLVMValueRef b) {
    if (!a || !b) return a ? a : b;
    return LLVMBuildAnd(unit->builder, a, b, "");
}

/* What is added to the address comes last, so that places a constant distance apart are one pointer
 * and the offsets of their accesses: extending 32 bits, LLVM could not tell. */
static LLVMValueRef element_pointer(const Lower *lower, uint32_t arg, LLVMValueRef address) {
    const Unit *unit = lower->unit;
    Dtype dtype = lower->plan->buffers.data[lower->kernel->args.data[arg]].dtype;
    LLVMTypeRef element = unit_memory_type(unit, dtype, 1);
    int64_t constant;
    address = point_without_constant(address, &constant);
    if (LLVMTypeOf(address) == unit->i32)
        address = LLVMBuildSExt(unit->builder, address, unit->i64, "");
    LLVMValueRef pointer =
        LLVMBuildGEP2(unit->builder, element, lower->pointers[arg], &address, 1, "");
    LLVMValueRef ahead = unit_int(unit->i64, constant);
    return constant ? LLVMBuildGEP2(unit->builder, element, pointer, &ahead, 1, "") : pointer;
}

LLVMValueRef point_pointer(Point *point, const Scalar *load) {
    LLVMValueRef address = point_index_at(point, load->index, false);
    return element_pointer(point->lower, lower_arg(point->lower, load->buffer), address);
}

static LLVMValueRef plain_load(const Lower *lower, uint32_t arg, LLVMTypeRef type,
                               LLVMValueRef pointer, uint32_t align_bytes) {
    LLVMValueRef load = LLVMBuildLoad2(lower->unit->builder, type, pointer, "");
    LLVMSetAlignment(load, align_bytes);
    if (!lower->may_change[arg])
        LLVMSetMetadata(load, lower->unit->invariant_kind, lower->unit->invariant);
    return load;
}

/* One element; where the condition fails, element 0 instead. */
static LLVMValueRef load_one(const Lower *lower, uint32_t arg, Dtype dtype, LLVMValueRef address,
                             LLVMValueRef condition) {
    const Unit *unit = lower->unit;
    if (condition)
        address =
            LLVMBuildSelect(unit->builder, condition, address, lower_index_const(lower, 0), "");
    LLVMValueRef pointer = element_pointer(lower, arg, address);
    return plain_load(lower, arg, unit_memory_type(unit, dtype, 1), pointer, dtype_bytes(dtype));
}

static LLVMValueRef load_each_lane(Point *point, const Scalar *s, uint32_t arg,
                                   LLVMValueRef condition) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMValueRef addresses = point_index_at(point, s->index, true);
    LLVMValueRef all = LLVMGetPoison(unit_memory_type(unit, s->dtype, point->lanes));
    for (uint32_t i = 0; i < point->lanes; i++) {
        LLVMValueRef at = unit_i32(unit, i);
        LLVMValueRef address = LLVMBuildExtractElement(unit->builder, addresses, at, "");
        LLVMValueRef own = condition;
        if (condition && unit_is_vector(condition))
            own = LLVMBuildExtractElement(unit->builder, condition, at, "");
        LLVMValueRef element = load_one(lower, arg, s->dtype, address, own);
        all = LLVMBuildInsertElement(unit->builder, all, element, at, "");
    }
    return all;
}

static LLVMValueRef load_masked(Point *point, const Scalar *s, uint32_t arg, LLVMValueRef mask) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMTypeRef type = unit_memory_type(unit, s->dtype, point->lanes);
    LLVMTypeRef overloads[2] = {type, unit->global_ptr};
    LLVMValueRef pointer = element_pointer(lower, arg, point_index_at(point, s->index, false));
    LLVMValueRef args[3] = {pointer, unit_splat(unit, mask, point->lanes), LLVMConstNull(type)};
    LLVMValueRef call = unit_intrinsic(unit, "llvm.masked.load", overloads, 2, args, 3);
    unit_align_argument(unit, call, 1, dtype_bytes(s->dtype));
    return call;
}

/* Bytes up to which a contiguous vector access at this index is known to be aligned. */
static uint32_t access_align(const Point *point, IndexId index, uint32_t arg, Dtype dtype) {
    const Lower *lower = point->lower;
    uint32_t bytes = dtype_bytes(dtype), align = lower->variant->align_bytes;
    uint32_t lanes = lower->variant->align_args >> arg & 1 ? point->lanes : 1;
    while (lanes > 1 && !point_is_multiple(point, index, lanes)) lanes /= 2;
    if (align <= bytes) return bytes;
    return lanes * bytes < align ? lanes * bytes : align;
}

/* Contiguous elements in one access, which LLVM splits where they are not aligned; where the
 * (uniform) condition fails, those at 0 instead. */
static LLVMValueRef load_vector(Point *point, const Scalar *s, uint32_t arg, uint32_t align,
                                LLVMValueRef condition) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMValueRef address = point_index_at(point, s->index, false);
    if (condition)
        address =
            LLVMBuildSelect(unit->builder, condition, address, lower_index_const(lower, 0), "");
    LLVMTypeRef type = unit_memory_type(unit, s->dtype, point->lanes);
    LLVMValueRef pointer = element_pointer(lower, arg, address);
    uint32_t n_bytes = point->lanes * dtype_bytes(s->dtype);
    bool is_words = dtype_bytes(s->dtype) > 1; /* bools are not worth taking apart */
    bool is_whole = is_words && align == n_bytes && (n_bytes == 8 || n_bytes == 16);
    return (lower->read_once >> arg & 1) && is_whole && unit->target->has_load_hints
               ? unit_load_hinted(unit, type, n_bytes, pointer, lower->may_change[arg],
                                  lower->load_policy)
               : plain_load(lower, arg, type, pointer, align);
}

/* GPU: whether a tensor that is not empty holds as many elements as there are lanes, so that those
 * at 0 can be read where no lane exists. A caller's may be smaller; memory of our own is padded. */
static bool begins_with_lanes(const Point *point, uint32_t arg) {
    const Kernel *kernel = point->lower->kernel;
    const Buffer *buffer = &point->lower->plan->buffers.data[kernel->args.data[arg]];
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId n = shape_n_elems(indextab_dims(tab), &buffer->shape);
    return buffer->kind == BUFFER_TEMP || dim_lo(indextab_dims(tab), n) >= point->lanes ||
           index_is_multiple(tab, index_dim(tab, n), NO_AXIS, point->lanes);
}

/* Whether lanes stand beside one another somewhere in the kernel, whatever the extents are. */
static bool has_lanes(const Point *point) {
    const Kernel *kernel = point->lower->kernel;
    DimId n = kernel_axis_extent(kernel, point->lane_axis);
    return dim_lo(indextab_dims(scalartab_indices(kernel->scalars)), n) > 0;
}

/* On chip. The access runs through the kernel's place axes in order, so that the place within the
 * tile follows from the axes (GEMM), or is the address less that of the tile's first element
 * (rows, which lie as in memory). */
static LLVMValueRef chip_pointer(Point *point, uint32_t arg, IndexId index, Dtype dtype,
                                 LLVMValueRef condition) {
    Lower *lower = point->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Kernel *kernel = lower->kernel;
    LLVMValueRef pitch = lower_dim(lower, lower->chips[arg].pitch), at;
    const BlockTile *tile = lower->tile;
    if (kernel->form == FORM_GEMM) {
        LLVMValueRef m0 = unit_index_cast(unit, tile->m0, lower->index_type);
        LLVMValueRef n0 = unit_index_cast(unit, tile->n0, lower->index_type);
        LLVMValueRef row = LLVMBuildSub(builder, point->axis[gemm_axis_m(kernel)], m0, "");
        LLVMValueRef column = LLVMBuildSub(builder, point->axis[gemm_axis_n(kernel)], n0, "");
        at = LLVMBuildAdd(builder, LLVMBuildMul(builder, row, pitch, ""), column, "");
    } else {
        LLVMValueRef first = unit_index_cast(unit, tile->first_row, lower->index_type);
        first = LLVMBuildMul(builder, first, pitch, "");
        at = LLVMBuildSub(builder, point_index_at(point, index, false), first, "");
    }
    at = unit_index_cast(unit, at, unit->i32);
    if (condition) at = LLVMBuildSelect(builder, condition, at, unit_i32(unit, 0), "");
    LLVMTypeRef element = unit_memory_type(unit, dtype, 1);
    return LLVMBuildGEP2(builder, element, lower->chips[arg].base, &at, 1, "");
}

static uint32_t chip_lanes(const Point *point, uint32_t axes) {
    return point_on_lanes(point, axes) ? point->lanes : 1;
}

static LLVMValueRef load_from_chip(Point *point, const Scalar *s, uint32_t arg) {
    const Unit *unit = point->lower->unit;
    uint32_t lanes = chip_lanes(point, s->axes);
    LLVMValueRef pointer = chip_pointer(point, arg, s->index, s->dtype, point->active);
    LLVMTypeRef type = unit_memory_type(unit, s->dtype, lanes);
    LLVMValueRef load = LLVMBuildLoad2(unit->builder, type, pointer, "");
    LLVMSetAlignment(load, lanes * dtype_bytes(s->dtype));
    return load;
}

static bool is_on_chip(const Lower *lower, uint32_t arg) {
    return lower->chips && lower->chips[arg].base;
}

static LLVMValueRef load_value(Point *point, const Scalar *s) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    uint32_t arg = lower_arg(lower, s->buffer);
    if (is_on_chip(lower, arg)) return load_from_chip(point, s, arg);
    LLVMValueRef guard = s->guard ? point_guard(point, s->guard) : NULL;
    LLVMValueRef condition = point->active;
    if (guard && unit_is_vector(guard) && condition)
        condition = unit_splat(unit, condition, point->lanes);
    condition = and_opt(unit, condition, guard);
    if (!point_on_lanes(point, s->axes))
        return load_one(lower, arg, s->dtype, point_index_at(point, s->index, false), condition);
    if (point->mask && condition) condition = unit_splat(unit, condition, point->lanes);
    condition = and_opt(unit, condition, point->mask);
    bool is_contiguous = point_motion(point, s->index) == LANES_CONTIGUOUS;
    uint32_t align = access_align(point, s->index, arg, s->dtype);
    if (!is_contiguous) return load_each_lane(point, s, arg, condition);
    if (!unit_is_gpu(unit))
        return condition ? load_masked(point, s, arg, condition)
                         : load_vector(point, s, arg, align, NULL);
    bool is_vector = !condition || (!unit_is_vector(condition) && ((!guard && has_lanes(point)) ||
                                                                   begins_with_lanes(point, arg)));
    return is_vector ? load_vector(point, s, arg, align, condition)
                     : load_each_lane(point, s, arg, condition);
}

LLVMValueRef point_loaded(Point *point, ScalarId load) {
    return load_value(point, scalar_get(point->lower->kernel->scalars, load));
}

/* Values. */

static LLVMValueRef from_memory(const Unit *unit, Dtype dtype, LLVMValueRef value) {
    if (dtype != DT_BOOL) return value;
    return LLVMBuildICmp(unit->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

static LLVMValueRef prim_value(Point *point, const Scalar *s) {
    Unit *unit = point->lower->unit;
    const PrimInfo *info = prim_info(s->prim);
    LLVMValueRef args[3] = {NULL}, narrow = point_narrow_compared(point, s);
    if (narrow) return narrow;
    LLVMValueRef contracted = point_contracted(point, s);
    if (contracted) return contracted;
    bool any_vector = false;
    for (uint32_t i = 0; i < info->arity; i++) {
        args[i] = point_value(point, s->args[i]);
        any_vector = any_vector || unit_is_vector(args[i]);
    }
    Dtype operand = scalar_get(point->lower->kernel->scalars, s->args[info->arity - 1])->dtype;
    LLVMValueRef quotient = point_quotient(point->lower, s, args[0], args[1]);
    if (quotient) return quotient;
    for (uint32_t i = 0; i < info->arity && any_vector; i++)
        args[i] = unit_splat(unit, args[i], point->lanes);
    if (s->prim == PRIM_EXP && point_is_at_most_0(point->lower->kernel, s->args[0]))
        return math_exp_below_0(&unit->math, args[0]);
    return unit_prim(unit, s->prim, operand, args[0], args[1], args[2]);
}

static LLVMValueRef index_value_i32(Point *point, const Scalar *s) {
    Lower *lower = point->lower;
    bool per_lane = point_on_lanes(point, s->axes);
    LLVMValueRef index = point_index_at(point, s->index, per_lane);
    if (lower->index_type == lower->unit->i32) return index;
    return LLVMBuildTrunc(lower->unit->builder, index,
                          unit_vector_of(lower->unit->i32, per_lane ? point->lanes : 1), "");
}

static LLVMValueRef build_value(Point *point, const Scalar *s) {
    Unit *unit = point->lower->unit;
    LLVMValueRef value;
    switch (s->kind) {
    case SCALAR_CONST:
        return unit_number(unit, s->dtype, s->number);
    case SCALAR_LOAD:
        return from_memory(unit, s->dtype, load_value(point, s));
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
    case SCALAR_CVT:
        value = point_narrow_rounded(point, s);
        if (value) return value;
        value = point_value(point, s->args[0]);
        return convert_value(
            &unit->math, value,
            unit_convert_type(scalar_get(point->lower->kernel->scalars, s->args[0])->dtype),
            unit_convert_type(s->dtype));
    }
    ice(unit->arena, "scalar of unknown kind");
}

LLVMValueRef point_value(Point *point, ScalarId id) {
    if (!point->values[id])
        point->values[id] = build_value(point, scalar_get(point->lower->kernel->scalars, id));
    return point->values[id];
}

LLVMValueRef point_lanes(Point *point, ScalarId id) {
    return unit_splat(point->lower->unit, point_value(point, id), point->lanes);
}

void point_prepare(Point *point, const ScalarId *roots, uint32_t n_roots, uint32_t inner_axes) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    uint32_t n = scalar_count(scalars);
    const bool *wanted =
        kernel_needed_scalars(point->lower->unit->arena, point->lower->kernel, roots, n_roots);
    for (ScalarId id = 1; id <= n; id++) {
        const Scalar *s = scalar_get(scalars, id);
        bool ready = s->kind != SCALAR_STAGE || point->results[s->slot];
        if (wanted[id] && !(s->axes & inner_axes) && ready) point_value(point, id);
    }
}

/* Whether the load's place or guard hangs on a reduction's result. */
static bool waits_for_results(const Point *point, ScalarId load) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    const bool *needed =
        kernel_needed_scalars(point->lower->unit->arena, point->lower->kernel, &load, 1);
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
        kernel_needed_scalars(point->lower->unit->arena, point->lower->kernel, roots, n_roots);
    for (ScalarId id = 1; id <= n && n_loads < most; id++)
        if (wanted[id] && !point->values[id] && scalar_get(scalars, id)->kind == SCALAR_LOAD &&
            !waits_for_results(point, id))
            loads[n_loads++] = id;
    return n_loads;
}

/* Stores. */

static LLVMValueRef to_memory(const Unit *unit, Dtype dtype, LLVMValueRef value, uint32_t lanes) {
    if (dtype != DT_BOOL) return value;
    return LLVMBuildZExt(unit->builder, value, unit_memory_type(unit, DT_BOOL, lanes), "");
}

static void store_one(const Lower *lower, uint32_t arg, LLVMValueRef value, LLVMValueRef address,
                      uint32_t bytes) {
    LLVMValueRef pointer = element_pointer(lower, arg, address);
    LLVMValueRef store = LLVMBuildStore(lower->unit->builder, value, pointer);
    LLVMSetAlignment(store, bytes);
}

/* Lanes that a mask is known to let through, side by side; n 0: it is not known, or not so. */
typedef struct LaneRun {
    uint32_t first, n;
} LaneRun;

static LaneRun known_run(const Unit *unit, LLVMValueRef mask, uint32_t lanes) {
    LaneRun run = {0};
    for (uint32_t i = 0; i < lanes && LLVMIsConstant(mask); i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(mask, i);
        if (lane == LLVMConstNull(unit->i1)) continue;
        bool goes_on = run.n == 0 || i == run.first + run.n;
        if (!goes_on || !lane || !LLVMIsAConstantInt(lane)) return (LaneRun){0};
        if (run.n++ == 0) run.first = i;
    }
    return run;
}

static LLVMValueRef lanes_of_run(const Unit *unit, LLVMValueRef value, LaneRun run) {
    if (run.n == 1)
        return LLVMBuildExtractElement(unit->builder, value, unit_i32(unit, run.first), "");
    LLVMValueRef *lanes = arena_array(unit->arena, LLVMValueRef, run.n);
    for (uint32_t i = 0; i < run.n; i++) lanes[i] = unit_i32(unit, run.first + i);
    LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(value));
    return LLVMBuildShuffleVector(unit->builder, value, poison, LLVMConstVector(lanes, run.n), "");
}

/* Known lanes are stored without a mask. A processor takes a masked store for one of all lanes: a
 * load of what lies beside those that are stored, as in place the next row's does, waits for it (13
 * ns where it takes 1, Xeon). And of one known lane whose value is a truncation, LLVM 22 takes the
 * masked store for AVX-512 apart wrongly and writes the untruncated value. */
static void store_masked(Point *point, const Store *store, uint32_t arg, LLVMValueRef value,
                         uint32_t bytes) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMValueRef address = point_index_at(point, store->address, false);
    LaneRun run = known_run(unit, point->mask, point->lanes);
    if (run.n) {
        value = lanes_of_run(unit, value, run);
        address = LLVMBuildAdd(unit->builder, address, lower_index_const(lower, run.first), "");
        store_one(lower, arg, value, address, bytes);
        return;
    }
    LLVMValueRef pointer = element_pointer(lower, arg, address);
    LLVMTypeRef overloads[2] = {LLVMTypeOf(value), unit->global_ptr};
    LLVMValueRef args[3] = {value, pointer, point->mask};
    LLVMValueRef call = unit_intrinsic(unit, "llvm.masked.store", overloads, 2, args, 3);
    unit_align_argument(unit, call, 2, bytes);
}

static void store_each_lane(Point *point, const Store *store, uint32_t arg, LLVMValueRef value,
                            uint32_t bytes) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMValueRef addresses = point_index_at(point, store->address, true);
    for (uint32_t i = 0; i < point->lanes; i++) {
        LLVMValueRef at = unit_i32(unit, i);
        LLVMValueRef element = LLVMBuildExtractElement(unit->builder, value, at, "");
        LLVMValueRef address = LLVMBuildExtractElement(unit->builder, addresses, at, "");
        If exists = {NULL};
        if (point->mask)
            exists = if_begin(unit, lower->function,
                              LLVMBuildExtractElement(unit->builder, point->mask, at, ""));
        store_one(lower, arg, element, address, bytes);
        if (point->mask) if_end(unit, &exists);
    }
}

static void store_to_chip(Point *point, const Store *store, uint32_t arg, Dtype dtype) {
    const Unit *unit = point->lower->unit;
    const IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    uint32_t lanes = chip_lanes(point, index_axes(tab, store->address));
    LLVMValueRef value = unit_splat(unit, point_value(point, store->value), lanes);
    value = to_memory(unit, dtype, value, lanes);
    LLVMValueRef pointer = chip_pointer(point, arg, store->address, dtype, NULL);
    LLVMSetAlignment(LLVMBuildStore(unit->builder, value, pointer), lanes * dtype_bytes(dtype));
}

/* All lanes, but for those that the point's mask leaves out. */
static void store_lanes(Point *point, const Store *store, uint32_t arg, LLVMValueRef value) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    uint32_t align = access_align(point, store->address, arg, dtype);
    if (point_motion(point, store->address) != LANES_CONTIGUOUS ||
        (unit_is_gpu(unit) && point->mask)) {
        store_each_lane(point, store, arg, value, dtype_bytes(dtype));
    } else if (point->mask) {
        store_masked(point, store, arg, value, dtype_bytes(dtype));
    } else {
        LLVMValueRef pointer =
            element_pointer(lower, arg, point_index_at(point, store->address, false));
        LLVMSetAlignment(LLVMBuildStore(unit->builder, value, pointer), align);
    }
}

/* Some lanes: where they may be all, that is worth a test, for one access of all lanes. */
static void store_inside(Point *point, const Store *store, uint32_t arg, LLVMValueRef value,
                         LLVMValueRef inside) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMTypeRef type = LLVMTypeOf(inside);
    Point some = *point;
    some.mask = and_opt(unit, point->mask, inside);
    If rest = {NULL};
    if (unit_is_gpu(unit) && !point->mask &&
        point_motion(point, store->address) == LANES_CONTIGUOUS) {
        LLVMValueRef all = unit_intrinsic(unit, "llvm.vector.reduce.and", &type, 1, &inside, 1);
        If whole = if_begin(unit, lower->function, all);
        store_lanes(point, store, arg, value);
        if_end(unit, &whole);
        rest = if_begin(unit, lower->function, LLVMBuildNot(unit->builder, all, ""));
    }
    store_lanes(&some, store, arg, value);
    if (rest.after) if_end(unit, &rest);
}

/* Where the guard lets all lanes through or none, what nothing else needed so far is computed
 * inside it. */
static void store_guarded(Point *point, const Store *store) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    uint32_t arg = lower_arg(lower, store->buffer);
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    LLVMValueRef inside = point_guard(point, store->guard);
    if (unit_is_vector(inside)) {
        LLVMValueRef value = point_lanes(point, store->value);
        store_inside(point, store, arg, to_memory(unit, dtype, value, point->lanes), inside);
        return;
    }
    Store all = *store;
    all.guard = GUARD_NONE;
    If within = if_begin(unit, lower->function, inside);
    Point own = point_inside(point);
    point_store(&own, &all);
    if_end(unit, &within);
}

void point_store(Point *point, const Store *store) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    uint32_t arg = lower_arg(lower, store->buffer);
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    if (store->guard) {
        store_guarded(point, store);
        return;
    }
    if (is_on_chip(lower, arg)) {
        store_to_chip(point, store, arg, dtype);
        return;
    }
    if (!lower->pointers[arg]) return;
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    if (!point_on_lanes(point, index_axes(tab, store->address))) {
        LLVMValueRef value = point_value(point, store->value);
        /* beside an axis of no elements, others have no part in an address; nothing of it runs */
        if (unit_is_vector(value))
            value = LLVMBuildExtractElement(unit->builder, value, unit_i32(unit, 0), "");
        value = to_memory(unit, dtype, value, 1);
        store_one(lower, arg, value, point_index_at(point, store->address, false),
                  dtype_bytes(dtype));
        return;
    }
    LLVMValueRef value = point_lanes(point, store->value);
    store_lanes(point, store, arg, to_memory(unit, dtype, value, point->lanes));
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

/* Where some are guarded: what several need, ahead of the guards. */
static void prepare_shared(Point *point, const Store *stores, uint32_t n) {
    const Kernel *kernel = point->lower->kernel;
    const Stage stage = {.stores = {.data = (Store *)stores, .n = n}};
    bool has_guards = false;
    for (uint32_t i = 0; i < n; i++) has_guards = has_guards || stores[i].guard;
    if (!has_guards) return;
    const ScalarNeed *needs = stage_needs(point->lower->unit->arena, kernel, &stage);
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
