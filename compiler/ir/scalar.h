/* The scalar DAG: the computation per element. It is hash-consed (equal scalars have the same id)
 * and built by op bodies and view composition. Readers visit arguments in order, so that nothing
 * depends on C's order of evaluation. */
#ifndef FUSEC_IR_SCALAR_H
#define FUSEC_IR_SCALAR_H

#include "base/vec.h"
#include "ir/index.h"
#include "ir/prim.h"

typedef uint32_t ScalarId;
typedef uint32_t GuardId;
enum { SCALAR_NONE = 0, GUARD_NONE = 0 };

/* A conjunction of ranges lo <= index < hi, as a hash-consed list. */
typedef struct Guard {
    GuardId next;
    IndexId index;
    DimId lo, hi;
} Guard;

typedef enum {
    SCALAR_CONST,   /* number or whole, in dtype (a compute type or storage type) */
    SCALAR_GIVEN,   /* argument `slot` of the constants that a launch gives */
    SCALAR_LOAD,    /* buffer[address], in the buffer's dtype; only where the guard holds */
    SCALAR_INDEX,   /* an index as i32 */
    SCALAR_INSIDE,  /* whether a guard holds (bool) */
    SCALAR_STAGE,   /* the finished result of reduction `slot` of this kernel */
    SCALAR_EXTREME, /* of an arg-reduction: the extreme value whose index the result is */
    SCALAR_PRIM,    /* a primitive on compute types */
    SCALAR_CVT,     /* conversion of args[0] to dtype, rounding once */
    SCALAR_BITCAST  /* the bits of args[0] as dtype, of the same width */
} ScalarKind;

typedef struct Scalar {
    ScalarKind kind;
    Dtype dtype;
    PrimId prim;
    ScalarId args[3];
    double number;     /* CONST */
    int64_t whole;     /* CONST of an integer dtype: the number, which a double may round */
    uint32_t buffer;   /* LOAD: index into the plan's buffers */
    IndexId index;     /* LOAD: element address; INDEX */
    GuardId guard;     /* LOAD, INSIDE */
    uint32_t slot;     /* STAGE, EXTREME, GIVEN */
    uint32_t axes;     /* bit set of the loop axes on which it depends */
    uint32_t moved_by; /* axes that change its value; without those of a load's guard */
    bool is_loose;     /* CVT: an op's rounding, skipped by readers that widen it */
} Scalar;

typedef struct ScalarTab ScalarTab;

/* A table begins with its scalars; [0] is unused and stands for SCALAR_NONE. */
typedef Vec(Scalar) VecScalar;

ScalarTab *scalartab_new(Arena *arena, IndexTab *indices);
/* Makes the table build programs of --numerics=fast: shorter forms of primitives, and roundings of
 * scalar_round only where the narrow value itself is used. */
void scalartab_set_fast(ScalarTab *tab);
bool scalartab_is_fast(const ScalarTab *tab);
IndexTab *scalartab_indices(const ScalarTab *tab);
Arena *scalartab_arena(const ScalarTab *tab);
/* Ids run from 1 to count. */
static inline uint32_t scalar_count(const ScalarTab *tab) {
    return ((const VecScalar *)tab)->n - 1;
}
static inline const Scalar *scalar_get(const ScalarTab *tab, ScalarId id) {
    return &((const VecScalar *)tab)->data[id];
}
/* A copy with the same ids, over the same indices. */
ScalarTab *scalartab_copy(Arena *arena, const ScalarTab *tab);
/* The same for a table that lies in memory that is freed. It takes the least memory as long as no
 * scalar is added. */
ScalarTab *scalartab_moved(Arena *arena, const ScalarTab *tab);
/* A copy of its own for a kernel of the same program, whose loads are of the buffers `to` where
 * these are of `from`. */
ScalarTab *scalartab_rebound(Arena *arena, const ScalarTab *tab, const uint32_t *from,
                             const uint32_t *to, uint32_t n);
/* The same over a copy of the indices. */
ScalarTab *scalartab_rebound_apart(Arena *arena, const ScalarTab *tab, const uint32_t *from,
                                   const uint32_t *to, uint32_t n);
bool scalartab_has_guards(const ScalarTab *tab);
/* Lets all loads of the buffer count from `begin` on. Loads that are made later may have two ids.
 */
void scalartab_move_loads(ScalarTab *tab, uint32_t buffer, DimId begin);
/* Makes the constant one that the launch gives, number `slot`. */
void scalartab_give(ScalarTab *tab, ScalarId constant, uint32_t slot);

ScalarId scalar_const(ScalarTab *tab, Dtype dtype, double number);
/* A constant of an integer dtype or bool. */
ScalarId scalar_const_int(ScalarTab *tab, Dtype dtype, int64_t whole);
/* `whole` as an element of an integer dtype, else `number`. */
ScalarId scalar_literal(ScalarTab *tab, Dtype dtype, double number, int64_t whole);
/* The same constant in another table. */
ScalarId scalar_const_like(ScalarTab *tab, const Scalar *constant);
ScalarId scalar_load(ScalarTab *tab, Dtype dtype, uint32_t buffer, IndexId address, GuardId guard);
ScalarId scalar_index(ScalarTab *tab, IndexId index);
ScalarId scalar_inside(ScalarTab *tab, GuardId guard);
/* The index with the value of an i32 in [0, extent). */
IndexId scalar_as_index(ScalarTab *tab, ScalarId value, DimId extent);
/* `axes`: the parallel axes; the result counts as dependent on all of them. */
ScalarId scalar_stage(ScalarTab *tab, Dtype dtype, uint32_t slot, uint32_t axes);
ScalarId scalar_extreme(ScalarTab *tab, Dtype dtype, uint32_t slot, uint32_t axes);
ScalarId scalar_cvt(ScalarTab *tab, ScalarId a, Dtype dtype);
/* The bits of an element as a dtype of the same width. */
ScalarId scalar_bitcast(ScalarTab *tab, ScalarId a, Dtype dtype);
/* One of the two; SCALAR_NONE of SCALAR_NONE. */
ScalarId scalar_cast(ScalarTab *tab, ScalarId a, Dtype dtype, bool keeps_bits);
/* The rounding of an op's result. It is scalar_cvt; in fast programs, a conversion of the rounded
 * value skips the rounding. */
ScalarId scalar_round(ScalarTab *tab, ScalarId a, Dtype dtype);
/* An index of i32 or i64, limited to 0..last, as i32; `last` is i32. */
ScalarId scalar_clamp_index(ScalarTab *tab, ScalarId index, ScalarId last);
/* Unused arguments are SCALAR_NONE. Folds constants, and a select on a constant. */
ScalarId scalar_prim(ScalarTab *tab, PrimId prim, ScalarId a, ScalarId b, ScalarId c);

/* `outer` and lo <= index < hi. A range that always holds is dropped, and so is one that another
 * range of the list implies. */
GuardId guard_and(ScalarTab *tab, GuardId outer, IndexId index, DimId lo, DimId hi);
Guard guard_get(const ScalarTab *tab, GuardId id);
/* Whether the first condition of `guard`, which guard_and made of `outer`, never holds or
 * contradicts a condition of `outer`: on the same index, one that differs by a dim, or the same
 * axis. */
bool guard_excludes(const ScalarTab *tab, GuardId guard, GuardId outer);
/* Whether `condition`'s first condition is one of the list's. */
bool guard_has(const ScalarTab *tab, GuardId list, Guard condition);
uint32_t guard_axes(const ScalarTab *tab, GuardId id);

/* Whether the scalar chooses a part of a concat, or between an element and a pad. */
bool scalar_chooses_part(const ScalarTab *tab, const Scalar *s);

/* The cost of one scalar and its address, in primitives. */
uint32_t scalar_own_cost(const ScalarTab *tab, ScalarId id);
/* The part of it that is the same at all points that differ in `axes` alone: divisions in the
 * address. */
uint32_t scalar_shared_cost(const ScalarTab *tab, ScalarId id, uint32_t axes);
/* The cost, in primitives, of everything reachable from `id` that is not marked in `seen` (count +
 * 1 flags). Marks it. */
uint32_t scalar_cost(const ScalarTab *tab, ScalarId id, bool *seen);
/* An array of cleared flags, one per scalar. */
bool *scalar_marks(const ScalarTab *tab);
/* Marks the arguments of all marked scalars, transitively: everything computed at the same point of
 * the loops. Values that only addresses and guards use are not marked. */
void scalar_mark_arguments(const ScalarTab *tab, bool *marked);
/* The scalar without conversions between floats that keep an infinity: those to 8-bit floats may
 * not. */
ScalarId scalar_without_casts(const ScalarTab *tab, ScalarId id);
/* scalar_mark_arguments for `root` alone. */
bool *scalar_reached(Arena *arena, const ScalarTab *tab, ScalarId root);
/* `max(load b0[i0], 0)`; for dumps and tests. */
void scalar_print(const ScalarTab *tab, ScalarId id, Text *out);

#endif
