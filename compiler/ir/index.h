/* Index expressions over a kernel's loop axes. Canonical form: offset + sum of dim coefficient *
 * atom. An atom is a loop axis, a floor division or remainder of an index by a dim, or a value read
 * from memory (a gather). Equal expressions have equal ids.
 *
 * An index is a nonnegative integer wherever it is used without a guard; axis k runs over [0,
 * extent of axis k). Division and remainder simplify by these ranges, so that splitting an axis and
 * joining it again gives the axis. */
#ifndef FUSEC_IR_INDEX_H
#define FUSEC_IR_INDEX_H

#include "ir/dim/dim.h"

typedef uint32_t IndexId;
enum { MAX_AXES = 32 };

typedef enum { ATOM_AXIS, ATOM_DIV, ATOM_MOD, ATOM_VALUE } IndexAtomKind;

typedef struct IndexAtom {
    IndexAtomKind kind;
    uint32_t axis;   /* ATOM_AXIS */
    IndexId operand; /* DIV, MOD */
    DimId divisor;   /* DIV, MOD; for VALUE the extent: the value is in [0, divisor) */
    uint32_t value;  /* ATOM_VALUE: the ScalarId of an i32 */
    uint32_t axes;   /* bit set of the loop axes on which it depends */
    /* The axes that change its value. Axes that only decide whether it has a value, such as those
     * of a load's guard, are not included. */
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
/* A copy with the same numbers, over the same dims. */
IndexTab *indextab_copy(Arena *arena, const IndexTab *tab);
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
/* The row-major index of `n` coordinates; the last of them is innermost. */
IndexId index_address(IndexTab *tab, uint32_t n, const IndexId *coords, const DimId *extents);
/* The row-major index over the first `n_axes` axes; the last of them is innermost. */
IndexId index_row_major(IndexTab *tab, uint32_t n_axes);
IndexId index_div(IndexTab *tab, IndexId a, DimId divisor); /* divisor positive */
IndexId index_mod(IndexTab *tab, IndexId a, DimId divisor);

IndexExpr index_expr(const IndexTab *tab, IndexId id);
IndexAtom index_atom(const IndexTab *tab, uint32_t atom);
bool index_is_dim(const IndexTab *tab, IndexId id, DimId *value);
/* Bit set of the axes on which the index depends, including through gathers. */
uint32_t index_axes(const IndexTab *tab, IndexId id);
/* The axes that change the index's value. */
uint32_t index_moved_by(const IndexTab *tab, IndexId id);
/* Whether every term is an axis times a dim: no division, remainder or value read from memory. */
bool index_is_affine(const IndexTab *tab, IndexId id);
/* Whether the index depends on a value read from memory. */
bool index_is_gathered(const IndexTab *tab, IndexId id);
/* The number of terms to compute; terms under a division count again for each division. At most
 * INDEX_MAX_WEIGHT. */
enum { INDEX_MAX_WEIGHT = 1 << 20 };
uint32_t index_weight(const IndexTab *tab, IndexId id);
/* The largest and smallest value as a dim, or DIM_NONE if unknown. */
DimId index_max(IndexTab *tab, IndexId id);
DimId index_min(IndexTab *tab, IndexId id);

/* Assumes until further notice that `dim` is a multiple of `multiple`, as a variant's condition has
 * established. DIM_NONE ends all assumptions. */
void index_assume_multiple(IndexTab *tab, DimId dim, int64_t multiple);
/* Adds an assumption to the current ones. */
void index_assume_also(IndexTab *tab, DimId dim, int64_t multiple);

/* Whether `axis` moves the index by a fixed stride. Sets *stride; DIM_NONE if the axis does not
 * move it. */
bool index_stride(const IndexTab *tab, IndexId id, uint32_t axis, DimId *stride);

/* The known stride; 0: none, or the axis does not move the index. */
int64_t index_stride_const(const IndexTab *tab, IndexId id, uint32_t axis);
/* A load in vectors whose lanes are at most so many elements apart reads all elements between them
 * and shuffles. */
enum { INDEX_NEAR_STRIDE = 8 };

/* How the index changes over `lanes` consecutive values of `axis`, starting at a multiple of
 * `lanes`. */
typedef enum {
    LANES_UNIFORM,    /* the same for all lanes */
    LANES_CONTIGUOUS, /* + 1 from lane to lane */
    LANES_VARYING     /* anything else */
} LaneMotion;
/* As lanes: an index that moves alike over so many neighbours does so from any start. */
enum { INDEX_ANY_START = 1 << 20 };
LaneMotion index_lane_motion(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes);
/* The same, where `shared` tells of each scalar whether the lanes share its value; NULL: it tells
 * of none. */
LaneMotion index_shared_motion(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes,
                               const bool *shared);
/* Whether the elements at neighbouring values of `axis` are the same, contiguous, or at most `most`
 * elements apart, from any start. */
bool index_is_near(IndexTab *tab, IndexId id, uint32_t axis, int64_t most);
/* How many neighbours along the axis share an element, if the elements that they share are side by
 * side, as those of an image that is enlarged; 0: they do not. */
enum { INDEX_MOST_SHARED = 4 };
uint32_t index_lanes_shared(const IndexTab *tab, IndexId id, uint32_t axis);
/* The elements side by side that `lanes` neighbours along the axis, from a multiple of the lanes
 * on, read again and again, as a row that is added to each of several rows; 0: they do not.
 * `shared`: see index_shared_motion. */
uint32_t index_lanes_repeated(IndexTab *tab, IndexId id, uint32_t axis, uint32_t lanes,
                              const bool *shared);
/* Whether the index is a multiple of `multiple` whenever `axis` is; UINT32_MAX means no axis. */
bool index_is_multiple(IndexTab *tab, IndexId id, uint32_t axis, int64_t multiple);

/* `12 + 64*i0 + i1 % 8`; axes print as i0, i1, ... */
void index_print(const IndexTab *tab, IndexId id, Text *out);

#endif
