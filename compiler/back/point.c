/* Emitting scalar programs. See point.h. */
#include "back/point.h"

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

static bool on_lanes(const Point *point, uint32_t axes) {
    return point->lanes > 1 && point->lane_axis != NO_AXIS && (axes >> point->lane_axis & 1);
}

/* Indices. */

static LLVMValueRef lane_numbers(const Point *point) {
    Unit *unit = point->lower->unit;
    LLVMValueRef *numbers = arena_array(unit->arena, LLVMValueRef, point->lanes);
    for (uint32_t i = 0; i < point->lanes; i++) numbers[i] = lower_index_const(point->lower, i);
    return LLVMConstVector(numbers, point->lanes);
}

static LLVMValueRef index_at(Point *point, IndexId id, bool per_lane);

static LLVMValueRef atom_at(Point *point, const IndexAtom *atom, bool per_lane) {
    Lower *lower = point->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef operand, divisor, value;
    switch (atom->kind) {
    case ATOM_AXIS:
        value = point->axis[atom->axis];
        if (!per_lane) return value;
        value = unit_splat(lower->unit, value, point->lanes);
        return LLVMBuildAdd(builder, value, lane_numbers(point), "");
    case ATOM_VALUE:
        value = point_value(point, atom->value);
        if (per_lane) value = unit_splat(lower->unit, value, point->lanes);
        if (lower->index_type == lower->unit->i32) return value;
        return LLVMBuildSExt(builder, value,
                             unit_vector_of(lower->index_type, per_lane ? point->lanes : 1), "");
    case ATOM_DIV:
    case ATOM_MOD:
        break;
    }
    operand = index_at(point, atom->operand, per_lane);
    divisor = lower_divisor(lower, atom->divisor);
    if (per_lane) divisor = unit_splat(lower->unit, divisor, point->lanes);
    return atom->kind == ATOM_DIV ? LLVMBuildUDiv(builder, operand, divisor, "")
                                  : LLVMBuildURem(builder, operand, divisor, "");
}

/* What is added to an axis value, apart from it: *constant. */
static LLVMValueRef without_constant(LLVMValueRef value, int64_t *constant) {
    *constant = 0;
    while (LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMAdd) {
        LLVMValueRef a = LLVMGetOperand(value, 0), b = LLVMGetOperand(value, 1);
        LLVMValueRef number = LLVMIsAConstantInt(a) ? a : b;
        if (!LLVMIsAConstantInt(number)) break;
        *constant += LLVMConstIntGetSExtValue(number);
        value = number == a ? b : a;
    }
    return value;
}

/* A term that no lane moves: its value with what is added to its axis left out, which goes to
 * *rest, so that places a constant distance apart have all but that constant in common. */
static LLVMValueRef term_at(Point *point, const IndexAtom *atom, DimId coefficient,
                            LLVMValueRef *rest) {
    Lower *lower = point->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    int64_t constant = 0;
    LLVMValueRef value = atom_at(point, atom, false), more = NULL;
    if (atom->kind == ATOM_AXIS) value = without_constant(value, &constant);
    if (constant) more = lower_index_const(lower, constant);
    if (!dim_equals_const(lower_dims(lower), coefficient, 1)) {
        LLVMValueRef c = lower_dim(lower, coefficient);
        value = LLVMBuildMul(builder, value, c, "");
        if (more) more = LLVMBuildMul(builder, c, more, "");
    }
    if (more) *rest = *rest ? LLVMBuildAdd(builder, *rest, more, "") : more;
    return value;
}

static LLVMValueRef moving_term_at(Point *point, const IndexAtom *atom, DimId coefficient) {
    Lower *lower = point->lower;
    LLVMValueRef value = atom_at(point, atom, true);
    if (dim_equals_const(lower_dims(lower), coefficient, 1)) return value;
    LLVMValueRef c = unit_splat(lower->unit, lower_dim(lower, coefficient), point->lanes);
    return LLVMBuildMul(lower->unit->builder, value, c, "");
}

/* Sums the terms that do not move with the lanes as scalars first, constants last. */
static LLVMValueRef index_at(Point *point, IndexId id, bool per_lane) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimTab *dims = lower_dims(lower);
    IndexExpr expr = index_expr(tab, id);
    LLVMValueRef total = lower_dim(lower, expr.offset);
    LLVMValueRef rest = NULL;
    bool is_zero = dim_equals_const(dims, expr.offset, 0);
    for (int moving = 0; moving < 2; moving++) {
        for (uint32_t i = 0; i < expr.n_terms; i++) {
            IndexAtom atom = index_atom(tab, expr.terms[i].atom);
            bool moves = per_lane && on_lanes(point, atom.axes);
            if (moves != (moving == 1)) continue;
            LLVMValueRef value = moves ? moving_term_at(point, &atom, expr.terms[i].coefficient)
                                       : term_at(point, &atom, expr.terms[i].coefficient, &rest);
            if (moves) total = unit_splat(unit, total, point->lanes);
            total = is_zero ? value : LLVMBuildAdd(unit->builder, total, value, "");
            is_zero = false;
        }
        if (rest) total = LLVMBuildAdd(unit->builder, total, rest, "");
        rest = NULL;
    }
    return per_lane ? unit_splat(unit, total, point->lanes) : total;
}

LLVMValueRef point_index(Point *point, IndexId id) {
    return index_at(point, id, false);
}

/* Guards. */

/* Whether lo <= index < hi for the whole conjunction: i1, or per lane when it varies. */
static LLVMValueRef guard_value(Point *point, GuardId guard) {
    Lower *lower = point->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    bool varies = on_lanes(point, guard_axes(lower->kernel->scalars, guard));
    LLVMValueRef all = NULL;
    for (; guard; guard = guard_get(lower->kernel->scalars, guard).next) {
        Guard g = guard_get(lower->kernel->scalars, guard);
        bool moves = on_lanes(point, index_axes(tab, g.index));
        uint32_t lanes = moves ? point->lanes : 1;
        LLVMValueRef index = index_at(point, g.index, moves);
        LLVMValueRef lo = unit_splat(lower->unit, lower_dim(lower, g.lo), lanes);
        LLVMValueRef hi = unit_splat(lower->unit, lower_dim(lower, g.hi), lanes);
        LLVMValueRef above = LLVMBuildICmp(builder, LLVMIntSGE, index, lo, "");
        LLVMValueRef below = LLVMBuildICmp(builder, LLVMIntSLT, index, hi, "");
        LLVMValueRef own = LLVMBuildAnd(builder, above, below, "");
        if (varies) own = unit_splat(lower->unit, own, point->lanes);
        all = all ? LLVMBuildAnd(builder, all, own, "") : own;
    }
    return all;
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
    address = without_constant(address, &constant);
    if (LLVMTypeOf(address) == unit->i32)
        address = LLVMBuildSExt(unit->builder, address, unit->i64, "");
    LLVMValueRef pointer =
        LLVMBuildGEP2(unit->builder, element, lower->pointers[arg], &address, 1, "");
    LLVMValueRef ahead = unit_int(unit->i64, constant);
    return constant ? LLVMBuildGEP2(unit->builder, element, pointer, &ahead, 1, "") : pointer;
}

LLVMValueRef point_pointer(Point *point, const Scalar *load) {
    LLVMValueRef address = index_at(point, load->index, false);
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
    LLVMValueRef addresses = index_at(point, s->index, true);
    LLVMValueRef all = LLVMGetPoison(unit_memory_type(unit, s->dtype, point->lanes));
    for (uint32_t i = 0; i < point->lanes; i++) {
        LLVMValueRef at = unit_int(unit->i32, i);
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
    LLVMValueRef pointer = element_pointer(lower, arg, index_at(point, s->index, false));
    LLVMValueRef args[3] = {pointer, unit_splat(unit, mask, point->lanes), LLVMConstNull(type)};
    LLVMValueRef call = unit_intrinsic(unit, "llvm.masked.load", overloads, 2, args, 3);
    unit_align_argument(unit, call, 1, dtype_bytes(s->dtype));
    return call;
}

/* Bytes up to which a contiguous vector access at this index is known to be aligned. */
static uint32_t access_align(const Point *point, IndexId index, uint32_t arg, Dtype dtype) {
    const Lower *lower = point->lower;
    uint32_t bytes = dtype_bytes(dtype), vector_bytes = point->lanes * bytes;
    uint32_t align = lower->variant->align_bytes;
    bool is_aligned = align > bytes && (lower->variant->align_args >> arg & 1) &&
                      index_is_multiple(scalartab_indices(lower->kernel->scalars), index,
                                        point->lane_axis, point->lanes);
    if (!is_aligned) return bytes;
    return vector_bytes < align ? vector_bytes : align;
}

/* Contiguous elements in one access, which LLVM splits where they are not aligned; where the
 * (uniform) condition fails, those at 0 instead. */
static LLVMValueRef load_vector(Point *point, const Scalar *s, uint32_t arg, uint32_t align,
                                LLVMValueRef condition) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMValueRef address = index_at(point, s->index, false);
    if (condition)
        address =
            LLVMBuildSelect(unit->builder, condition, address, lower_index_const(lower, 0), "");
    return plain_load(lower, arg, unit_memory_type(unit, s->dtype, point->lanes),
                      element_pointer(lower, arg, address), align);
}

/* On chip. The access runs through the kernel's place axes in order, so that the place within the
 * tile follows from the axes (contraction), or is the address less that of the tile's first element
 * (rows, which lie without gaps). */
static LLVMValueRef chip_pointer(Point *point, uint32_t arg, IndexId index, Dtype dtype,
                                 LLVMValueRef condition) {
    Lower *lower = point->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Kernel *kernel = lower->kernel;
    LLVMValueRef pitch = lower_index_const(lower, lower->chips[arg].pitch), at;
    const BlockTile *tile = lower->tile;
    if (kernel->form == FORM_CONTRACT) {
        LLVMValueRef m0 = unit_index_cast(unit, tile->m0, lower->index_type);
        LLVMValueRef n0 = unit_index_cast(unit, tile->n0, lower->index_type);
        LLVMValueRef row = LLVMBuildSub(builder, point->axis[gemm_axis_m(kernel)], m0, "");
        LLVMValueRef column = LLVMBuildSub(builder, point->axis[gemm_axis_n(kernel)], n0, "");
        at = LLVMBuildAdd(builder, LLVMBuildMul(builder, row, pitch, ""), column, "");
    } else {
        LLVMValueRef first = unit_index_cast(unit, tile->first_row, lower->index_type);
        first = LLVMBuildMul(builder, first, pitch, "");
        at = LLVMBuildSub(builder, index_at(point, index, false), first, "");
    }
    at = unit_index_cast(unit, at, unit->i32);
    if (condition) at = LLVMBuildSelect(builder, condition, at, unit_int(unit->i32, 0), "");
    LLVMTypeRef element = unit_memory_type(unit, dtype, 1);
    return LLVMBuildGEP2(builder, element, lower->chips[arg].base, &at, 1, "");
}

static uint32_t chip_lanes(const Point *point, uint32_t axes) {
    return on_lanes(point, axes) ? point->lanes : 1;
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
    LLVMValueRef guard = s->guard ? guard_value(point, s->guard) : NULL;
    LLVMValueRef condition = point->active;
    if (guard && unit_is_vector(guard) && condition)
        condition = unit_splat(unit, condition, point->lanes);
    condition = and_opt(unit, condition, guard);
    if (!on_lanes(point, s->axes))
        return load_one(lower, arg, s->dtype, index_at(point, s->index, false), condition);
    if (point->mask && condition) condition = unit_splat(unit, condition, point->lanes);
    condition = and_opt(unit, condition, point->mask);
    bool is_contiguous = index_lane_motion(scalartab_indices(lower->kernel->scalars), s->index,
                                           point->lane_axis, point->lanes) == LANES_CONTIGUOUS;
    uint32_t align = access_align(point, s->index, arg, s->dtype);
    if (!is_contiguous) return load_each_lane(point, s, arg, condition);
    if (!unit_is_gpu(unit))
        return condition ? load_masked(point, s, arg, condition)
                         : load_vector(point, s, arg, align, NULL);
    return condition && unit_is_vector(condition) ? load_each_lane(point, s, arg, condition)
                                                  : load_vector(point, s, arg, align, condition);
}

/* Values. */

static LLVMValueRef from_memory(const Unit *unit, Dtype dtype, LLVMValueRef value) {
    if (dtype != DT_BOOL) return value;
    return LLVMBuildICmp(unit->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

/* Makes what is needed to divide by `y` right behind it, so that it is there wherever y is. */
static MathDivisor divisor_of(Lower *lower, LLVMValueRef y) {
    Unit *unit = lower->unit;
    for (uint32_t i = 0; i < lower->divisors.n; i++)
        if (lower->divisors.data[i].value == y) return lower->divisors.data[i];
    LLVMBasicBlockRef here = unit_here(unit);
    LLVMValueRef next = LLVMIsAInstruction(y) ? LLVMGetNextInstruction(y) : NULL;
    while (next && LLVMIsAPHINode(next)) next = LLVMGetNextInstruction(next);
    if (next)
        LLVMPositionBuilderBefore(unit->builder, next);
    else if (LLVMIsAInstruction(y))
        unit_goto(unit, LLVMGetInstructionParent(y));
    MathDivisor divisor = math_divisor(&unit->math, y);
    unit_goto(unit, here);
    vec_push(unit->arena, &lower->divisors, divisor);
    return divisor;
}

/* Whether all lanes of a division have one divisor, and it pays to know. */
static bool has_one_divisor(const Unit *unit, const Scalar *s, Dtype operand,
                            LLVMValueRef const *args) {
    return s->prim == PRIM_DIV && operand == DT_F32 && unit_is_gpu(unit) &&
           unit_is_vector(args[0]) && !unit_is_vector(args[1]);
}

/* Whether it is an element less the largest of the row's: at most 0, or NaN. */
static bool is_at_most_0(const Kernel *kernel, ScalarId id) {
    const Scalar *s = scalar_get(kernel->scalars, id);
    if (s->kind != SCALAR_PRIM || s->prim != PRIM_SUB) return false;
    const Scalar *largest = scalar_get(kernel->scalars, s->args[1]);
    if (largest->kind != SCALAR_STAGE) return false;
    const Reduce *reduce = &kernel->reduces.data[largest->slot];
    return reduce->combine == PRIM_MAX && !reduce->is_arg && reduce->value == s->args[0] &&
           reduce->result == reduce->acc;
}

static LLVMValueRef prim_value(Point *point, const Scalar *s) {
    Unit *unit = point->lower->unit;
    const PrimInfo *info = prim_info(s->prim);
    LLVMValueRef args[3] = {NULL};
    bool any_vector = false;
    for (uint32_t i = 0; i < info->arity; i++) {
        args[i] = point_value(point, s->args[i]);
        any_vector = any_vector || unit_is_vector(args[i]);
    }
    Dtype operand = scalar_get(point->lower->kernel->scalars, s->args[info->arity - 1])->dtype;
    if (has_one_divisor(unit, s, operand, args)) {
        MathDivisor divisor = divisor_of(point->lower, args[1]);
        return math_quotient(&unit->math, args[0], &divisor);
    }
    for (uint32_t i = 0; i < info->arity && any_vector; i++)
        args[i] = unit_splat(unit, args[i], point->lanes);
    if (s->prim == PRIM_EXP && is_at_most_0(point->lower->kernel, s->args[0]))
        return math_exp_below_0(&unit->math, args[0]);
    return unit_prim(unit, s->prim, operand, args[0], args[1], args[2]);
}

static LLVMValueRef index_value_i32(Point *point, const Scalar *s) {
    Lower *lower = point->lower;
    bool per_lane = on_lanes(point, s->axes);
    LLVMValueRef index = index_at(point, s->index, per_lane);
    if (lower->index_type == lower->unit->i32) return index;
    return LLVMBuildTrunc(lower->unit->builder, index,
                          unit_vector_of(lower->unit->i32, per_lane ? point->lanes : 1), "");
}

static LLVMValueRef narrow_prim(Point *point, const Scalar *s);

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
        return guard_value(point, s->guard);
    case SCALAR_STAGE:
        return point->results[s->slot];
    case SCALAR_EXTREME:
        return point->extremes[s->slot];
    case SCALAR_PRIM:
        return prim_value(point, s);
    case SCALAR_CVT:
        value = narrow_prim(point, s);
        if (value) return value;
        value = point_value(point, s->args[0]);
        return convert_value(
            &unit->math, value,
            unit_convert_type(scalar_get(point->lower->kernel->scalars, s->args[0])->dtype),
            unit_convert_type(s->dtype));
    }
    ice(unit->arena, "scalar of unknown kind");
}

/* Whether the machine computes on `dtype` itself, two elements an instruction. */
static bool is_native(const Unit *unit, Dtype dtype) {
    return unit_is_gpu(unit) && (dtype == DT_F16 || (dtype == DT_BF16 && unit->target->has_bf16));
}

/* The operand of a narrow primitive as a narrow value: what was widened, or a constant that is one.
 */
static ScalarId narrow_operand(const ScalarTab *scalars, ScalarId id, Dtype dtype) {
    const Scalar *s = scalar_get(scalars, id);
    bool was_widened = s->kind == SCALAR_CVT && scalar_get(scalars, s->args[0])->dtype == dtype;
    return was_widened ? s->args[0] : SCALAR_NONE;
}

/* A primitive on f32 of widened operands, rounded back at once, is the same primitive in the narrow
 * type, to the bit: f32 has more than twice its digits plus two, so rounding twice is rounding
 * once. NULL when `s` is no such thing. */
static LLVMValueRef narrow_prim(Point *point, const Scalar *s) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    const Scalar *prim = scalar_get(scalars, s->args[0]);
    Unit *unit = point->lower->unit;
    bool is_candidate =
        is_native(unit, s->dtype) && prim->kind == SCALAR_PRIM && prim->dtype == DT_F32 &&
        (prim->prim == PRIM_ADD || prim->prim == PRIM_SUB || prim->prim == PRIM_MUL ||
         prim->prim == PRIM_MIN || prim->prim == PRIM_MAX || prim->prim == PRIM_NEG);
    if (!is_candidate) return NULL;
    LLVMValueRef args[3] = {NULL};
    uint32_t arity = prim_info(prim->prim)->arity;
    for (uint32_t i = 0; i < arity; i++) {
        const Scalar *operand = scalar_get(scalars, prim->args[i]);
        ScalarId narrow = narrow_operand(scalars, prim->args[i], s->dtype);
        bool is_constant = operand->kind == SCALAR_CONST &&
                           dtype_round(s->dtype, operand->number) == operand->number;
        if (!narrow && !is_constant) return NULL;
        args[i] =
            narrow ? point_value(point, narrow) : unit_number(unit, s->dtype, operand->number);
    }
    bool any_vector = unit_is_vector(args[0]) || (arity > 1 && unit_is_vector(args[1]));
    for (uint32_t i = 0; i < arity && any_vector; i++)
        args[i] = unit_splat(unit, args[i], point->lanes);
    return unit_prim(unit, prim->prim, s->dtype, args[0], args[1], NULL);
}

LLVMValueRef point_value(Point *point, ScalarId id) {
    if (!point->values[id])
        point->values[id] = build_value(point, scalar_get(point->lower->kernel->scalars, id));
    return point->values[id];
}

LLVMValueRef point_lanes(Point *point, ScalarId id) {
    return unit_splat(point->lower->unit, point_value(point, id), point->lanes);
}

static void mark_index(const IndexTab *tab, IndexId id, bool *wanted) {
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom.kind == ATOM_VALUE) wanted[atom.value] = true;
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) mark_index(tab, atom.operand, wanted);
    }
}

/* What a scalar is computed from: arguments, and values in its index and guard. */
static void mark_operands(const ScalarTab *scalars, const Scalar *s, bool *marked) {
    const IndexTab *tab = scalartab_indices(scalars);
    for (int i = 0; i < 3; i++) marked[s->args[i]] = true;
    if (s->index) mark_index(tab, s->index, marked);
    for (GuardId g = s->guard; g; g = guard_get(scalars, g).next)
        mark_index(tab, guard_get(scalars, g).index, marked);
}

/* Per scalar, whether the roots need it. */
static bool *mark_wanted(const Point *point, const ScalarId *roots, uint32_t n_roots) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    uint32_t n = scalar_count(scalars);
    bool *wanted = arena_array(point->lower->unit->arena, bool, n + 1);
    for (uint32_t i = 0; i < n_roots; i++) wanted[roots[i]] = true;
    for (ScalarId id = n; id > 0; id--)
        if (wanted[id]) mark_operands(scalars, scalar_get(scalars, id), wanted);
    return wanted;
}

void point_prepare(Point *point, const ScalarId *roots, uint32_t n_roots, uint32_t inner_axes) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    uint32_t n = scalar_count(scalars);
    const bool *wanted = mark_wanted(point, roots, n_roots);
    for (ScalarId id = 1; id <= n; id++) {
        const Scalar *s = scalar_get(scalars, id);
        bool ready = s->kind != SCALAR_STAGE || point->results[s->slot];
        if (wanted[id] && !(s->axes & inner_axes) && ready) point_value(point, id);
    }
}

/* Whether the load's place or guard hangs on a reduction's result. */
static bool waits_for_results(const Point *point, ScalarId load) {
    const ScalarTab *scalars = point->lower->kernel->scalars;
    const bool *needed = mark_wanted(point, &load, 1);
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
    const bool *wanted = mark_wanted(point, roots, n_roots);
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

/* Whether the mask is known to let lane 0 alone through. */
static bool is_first_lane_only(const Unit *unit, LLVMValueRef mask, uint32_t lanes) {
    LLVMValueRef *first = arena_array(unit->arena, LLVMValueRef, lanes);
    for (uint32_t i = 0; i < lanes; i++) first[i] = LLVMConstInt(unit->i1, i == 0, false);
    return LLVMConstVector(first, lanes) == mask;
}

/* A single lane is stored as a scalar: where its value is a truncation, LLVM 22 takes the masked
 * store of one known lane for AVX-512 apart wrongly and writes the untruncated value. */
static void store_masked(Point *point, const Store *store, uint32_t arg, LLVMValueRef value,
                         uint32_t bytes) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    if (is_first_lane_only(unit, point->mask, point->lanes)) {
        value = LLVMBuildExtractElement(unit->builder, value, unit_int(unit->i32, 0), "");
        store_one(lower, arg, value, index_at(point, store->address, false), bytes);
        return;
    }
    LLVMValueRef pointer = element_pointer(lower, arg, index_at(point, store->address, false));
    LLVMTypeRef overloads[2] = {LLVMTypeOf(value), unit->global_ptr};
    LLVMValueRef args[3] = {value, pointer, point->mask};
    LLVMValueRef call = unit_intrinsic(unit, "llvm.masked.store", overloads, 2, args, 3);
    unit_align_argument(unit, call, 2, bytes);
}

static void store_each_lane(Point *point, const Store *store, uint32_t arg, LLVMValueRef value,
                            uint32_t bytes) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    LLVMValueRef addresses = index_at(point, store->address, true);
    for (uint32_t i = 0; i < point->lanes; i++) {
        LLVMValueRef at = unit_int(unit->i32, i);
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

void point_store(Point *point, const Store *store) {
    Lower *lower = point->lower;
    Unit *unit = lower->unit;
    uint32_t arg = lower_arg(lower, store->buffer);
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    if (is_on_chip(lower, arg)) {
        store_to_chip(point, store, arg, dtype);
        return;
    }
    uint32_t bytes = dtype_bytes(dtype);
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    if (!on_lanes(point, index_axes(tab, store->address))) {
        LLVMValueRef value = to_memory(unit, dtype, point_value(point, store->value), 1);
        store_one(lower, arg, value, index_at(point, store->address, false), bytes);
        return;
    }
    LLVMValueRef value = to_memory(unit, dtype, point_lanes(point, store->value), point->lanes);
    uint32_t align = access_align(point, store->address, arg, dtype);
    bool is_contiguous =
        index_lane_motion(tab, store->address, point->lane_axis, point->lanes) == LANES_CONTIGUOUS;
    if (!is_contiguous || (unit_is_gpu(unit) && point->mask)) {
        store_each_lane(point, store, arg, value, bytes);
    } else if (point->mask) {
        store_masked(point, store, arg, value, bytes);
    } else {
        LLVMValueRef pointer = element_pointer(lower, arg, index_at(point, store->address, false));
        LLVMSetAlignment(LLVMBuildStore(unit->builder, value, pointer), align);
    }
}
