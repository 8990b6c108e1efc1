/* Index expressions: where a kernel's loop axes point. Canonical form: offset + sum of dim
 * coefficient * atom; an atom is a loop axis, a floor division or remainder of an index by a dim,
 * or a value read from memory (a gather). Equal expressions have equal ids.
 *
 * All indices are nonnegative integers wherever they are used unguarded; axis k runs over
 * [0, extent of axis k). Division and remainder simplify by those ranges, so splitting an axis and
 * joining it again leaves the axis itself. */
#ifndef FUSEC_IR_INDEX_H
#define FUSEC_IR_INDEX_H

#include "ir/dim.h"

typedef uint32_t IndexId;
enum { MAX_AXES = 16 };

typedef enum { ATOM_AXIS, ATOM_DIV, ATOM_MOD, ATOM_VALUE } IndexAtomKind;

typedef struct IndexAtom {
    IndexAtomKind kind;
    uint32_t axis;   /* ATOM_AXIS */
    IndexId operand; /* DIV, MOD */
    DimId divisor;   /* DIV, MOD; for VALUE the extent: the value is in [0, divisor) */
    uint32_t value;  /* ATOM_VALUE: the ScalarId of an i32 */
    uint32_t axes;   /* bit set of the loop axes it depends on */
    /* Those that change its number: not those of which it is known only whether it has one, as of a
     * value that is read under a guard. */
    uint32_t moved_by;
} IndexAtom;

typedef struct IndexTerm {
    DimId coefficient;
    uint32_t atom;
} IndexTerm;

typedef struct IndexExpr {
    DimId offset;
    uint32_t n_terms;
    const IndexTerm *terms; /* ascending by atom, no zero coefficients */
} IndexExpr;

typedef struct IndexTab IndexTab;

IndexTab *indextab_new(Arena *arena, DimTab *dims);
DimTab *indextab_dims(const IndexTab *tab);
/* Adds the next axis and returns its number. */
uint32_t index_new_axis(IndexTab *tab, DimId extent);
uint32_t index_n_axes(const IndexTab *tab);
DimId index_axis_extent(const IndexTab *tab, uint32_t axis);

IndexId index_dim(IndexTab *tab, DimId value); /* constant over the axes */
IndexId index_axis(IndexTab *tab, uint32_t axis);
IndexId index_value(IndexTab *tab, uint32_t scalar, DimId extent, uint32_t axes, uint32_t moved_by);
IndexId index_add(IndexTab *tab, IndexId a, IndexId b);
IndexId index_add_dim(IndexTab *tab, IndexId a, DimId b);
IndexId index_scale(IndexTab *tab, IndexId a, DimId factor);
/* Over the first `n_axes` axes, the last of them innermost. */
IndexId index_row_major(IndexTab *tab, uint32_t n_axes);
IndexId index_div(IndexTab *tab, IndexId a, DimId divisor); /* divisor positive */
IndexId index_mod(IndexTab *tab, IndexId a, DimId divisor);

IndexExpr index_expr(const IndexTab *tab, IndexId id);
IndexAtom index_atom(const IndexTab *tab, uint32_t atom);
bool index_is_dim(const IndexTab *tab, IndexId id, DimId *value);
/* Bit set of the axes it depends on, through gathers too. */
uint32_t index_axes(const IndexTab *tab, IndexId id);
/* Of these, those that change its number. */
uint32_t index_moved_by(const IndexTab *tab, IndexId id);
/* Whether it rests on a value that is read from memory. */
bool index_is_gathered(const IndexTab *tab, IndexId id);
/* Terms to compute for it, those under divisions again for each: at most INDEX_MAX_WEIGHT. */
enum { INDEX_MAX_WEIGHT = 1 << 20 };
uint32_t index_weight(const IndexTab *tab, IndexId id);
/* Largest and smallest value as a dim, or DIM_NONE when not known. */
DimId index_max(IndexTab *tab, IndexId id);
DimId index_min(IndexTab *tab, IndexId id);

/* From here on, until changed, takes `dim` for a multiple of `multiple` (DIM_NONE: nothing taken):
 * what a variant's condition has established. */
void index_assume_multiple(IndexTab *tab, DimId dim, int64_t multiple);
/* Beside what is taken already. */
void index_assume_also(IndexTab *tab, DimId dim, int64_t multiple);

/* Whether `axis` moves an index by a fixed stride, which is then *stride (DIM_NONE: not at all). */
bool index_stride(const IndexTab *tab, IndexId id, uint32_t axis, DimId *stride);

/* How an index moves over `lanes` consecutive values of `axis`, from any multiple of `lanes`. */
typedef enum {
    LANES_UNIFORM,    /* the same for all lanes */
    LANES_CONTIGUOUS, /* + 1 from lane to lane */
    LANES_VARYING     /* anything else */
} LaneMotion;
LaneMotion index_lane_motion(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes);
/* Whether it is a multiple of `multiple` whenever `axis` (if any; UINT32_MAX for none) is. */
bool index_is_multiple(IndexTab *tab, IndexId id, uint32_t axis, int64_t multiple);

/* `12 + 64*i0 + i1 % 8`; axes print as i0, i1, ... */
void index_print(const IndexTab *tab, IndexId id, Text *out);

#endif
