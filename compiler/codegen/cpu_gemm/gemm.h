/* The CPU GEMM's interface between packing, register tile and loops.
 *
 * The register tile takes one operand in panels of a few rows and reads it element by element
 * (broadcast). It takes the other in panels of a few vectors, whose lanes are columns of the tile.
 * Usually the rows lie along m and the columns along n; if n is shorter than a vector, the tile is
 * transposed. Partial results are in the accumulator's dtype, and so are packed operands, unless
 * tile registers multiply them (gemm_amx.c). */
#ifndef FUSEC_CODEGEN_CPU_GEMM_H
#define FUSEC_CODEGEN_CPU_GEMM_H

#include "codegen/cpu/cpu.h"
#include "plan/access.h"
#include "template/cpu_amx.h"
#include "template/cpu_pack.h"
#include "template/cpu_sweep.h"

typedef struct GemmOperand {
    ScalarId value;
    Dtype dtype;
    uint32_t axis;   /* m or n */
    DimId extent;    /* extent of that axis */
    bool is_along_k; /* packing loads vectors along k, not along `axis` */
    uint32_t lanes;  /* of these vectors */
    CpuPack pack;
    PointPiece piece; /* of k that is packed */
    CpuSpan span;     /* of k: the piece, as far as it is in the block of k */
    Val offsets; /* see gemm_offsets.c: what k adds to the address, where a vector begins in the
                  * block of k, or at each k; NULL: each vector computes its address */
    bool has_all_offsets;    /* of all of K */
    int64_t even_stride;     /* of elements from one k to the next, if the table is the same in each
                              * block of k; else 0 */
    const CpuStrips *strips; /* of PACK_STRIPS */
} GemmOperand;

/* The rows and columns of a work unit, and of the units that are multiplied at a time: whole
 * register tiles and whole units. */
typedef struct GemmUnits {
    uint32_t rows, columns, block_rows, block_columns;
} GemmUnits;

typedef struct Gemm {
    Lower *lower;
    Dtype acc, packed; /* the dtypes of partial results, and of the elements of packed operands */
    GemmOperand row, column;
    uint32_t k_axis;
    DimId k_extent;
    uint32_t lanes;
    bool has_pairs;   /* an element of the packed operands is two steps of k, each in 16 bits, which
                       * one instruction multiplies and adds; see gemm_pair.c */
    bool has_amx;     /* tile registers multiply the operands, see gemm_amx.c */
    bool is_streamed; /* columns are not packed: the unit has one panel of few rows, so they are
                       * used too seldom */
    bool has_panels;  /* columns are packed in memory already: Kernel.panel_columns */
    bool has_made_rows; /* the rows are on the stack, as a row kernel has made them; they are not
                         * packed */
    Dtype panel_dtype;
    uint32_t n_tile_rows, n_vectors, tile_columns; /* tile_columns: n_vectors * lanes */
    uint32_t panel_columns;                        /* a multiple of tile_columns */
    uint32_t depth;                                /* elements of a block of k; a multiple of
                                                    * lanes */
    uint32_t
        panel_depth; /* of packed columns: depth, and room for the vector in which a run ends */
    GemmUnits units;
    GemmUnits few; /* of the variant for few rows that has the same function; else like `units` */
    Val is_few;    /* i1: whether that variant runs */
    /* Rows that are stored at a time. If stores are turned, see gemm_turn.c, outputs lie side by
     * side in runs of so many rows; else 0. */
    uint32_t store_rows, store_run;
    StoreWeave weave; /* n 0: columns are stored one by one */
    /* Layouts, in elements. Element (r, k) of the packed rows is at r * row_stride + k * k_stride.
     * Element (k, c) of a panel of columns is at k * panel_columns + c; the next panel follows
     * after panel_depth steps of k, or for panels in memory after all of K. Partial results have a
     * pitch of n_batches * block_columns; those of a sweep have room for rows of outputs before and
     * after those of the unit. */
    uint32_t row_stride, k_stride;
    uint32_t strip_pitch;  /* elements from one strip to the next */
    uint32_t n_batches;    /* of a unit. Their strips, the vectors of a register tile and partial
                            * results are side by side, those of the first batch first */
    const CpuSweep *sweep; /* a unit goes down the rows of an image; NULL: it does not */
    uint32_t n_swept;      /* batches of such a unit, whose partial results are side by side */
    Val rows, columns, partials;
    /* The position in the loops. */
    Point point;                   /* of the unit: the batch axes are set */
    Val batch;                     /* of the unit, the first one */
    Val beside;                    /* where partial results of the point's batch begin in a row;
                                    * NULL: with the row */
    Val row_begin, row_end;        /* of the unit */
    Val column_begin, n_columns;   /* of the unit */
    Val k_begin, n_k;              /* of the block of k */
    Val panel_begin, partials_row; /* of the panel of rows: its first row, and the first row's
                                    * partial results */
} Gemm;

/* The GEMM of a kernel, without its arrays and its position. */
Gemm gemm_new(Lower *lower);
/* Whether one block has all of k, so no block begins with the partial results of another. */
bool gemm_has_one_k_block(const Gemm *gemm);
/* Chooses the vector axis of each operand's loads, and thereby the layout of the packed rows. */
void gemm_choose_layout(Gemm *gemm);
/* The elements from one row of partial results to the next. */
uint32_t gemm_pitch(const Gemm *gemm);
/* Sets the axes of batch `number` of the unit, or of the last batch that there is. */
void gemm_set_batch(const Gemm *gemm, Val number, Point *point);
/* The number of elements of a packed panel of rows. */
int64_t gemm_row_panel_elems(const Gemm *gemm);
/* Allocates the operands' offsets, and sets those of all of K. */
void gemm_make_offsets(Gemm *gemm);
/* Sets those of the block of k. */
void gemm_find_offsets(Gemm *gemm);
/* The address of the offsets of the block of k. */
Val gemm_block_offsets(const Gemm *gemm, const GemmOperand *operand);
/* What the point's other axes add to the operand's address: the address with k 0, less what offsets
 * have too. */
Val gemm_offsets_base(const Gemm *gemm, const GemmOperand *operand, const Point *point);
/* The pointer to which the offsets of an operand that is not packed are added, at row or column
 * `at`. */
Val gemm_place(const Gemm *gemm, const GemmOperand *operand, Val at);
/* The operand's elements at step `at` of k and after it, where the other axes add `base`. */
Val gemm_offset_lanes(const Gemm *gemm, const GemmOperand *operand, Val base, Val at, Val mask);
/* Steps through the piece of k in vectors that do not leave a run of the operand. `run`, or NULL,
 * is called before the steps of each run, which begins at `begin`. */
typedef void GemmRun(void *user, Val begin);
void gemm_each_k_step(const Gemm *gemm, const GemmOperand *operand, GemmRun *run, CpuStep *step,
                      void *user);
/* Packs the block of k, [k_begin, + n_k), of the panel's rows or of the unit's columns. Rows and
 * columns past the edge get copies or zeros; no result depends on them. */
void gemm_pack_rows(Gemm *gemm);
void gemm_pack_columns(Gemm *gemm);
/* The elements of the strips of a block of k, of one batch. */
int64_t gemm_strips_elems(const Gemm *gemm, const CpuStrips *strips);
/* The elements of strip memory that the steps of a block of k begin with, as a constant table. */
Val gemm_strip_offsets(const Gemm *gemm, const CpuStrips *strips);
/* Packs the strips of the block of k, for the unit's rows or columns. */
void gemm_pack_strips(const Gemm *gemm, const GemmOperand *operand);
/* The address of the unit's first panel in memory, at the block of k. */
Val gemm_find_panels(Gemm *gemm);
/* Where the register tile `column` columns into the unit has its columns, from those of the unit's
 * first panel on, in elements. */
Val gemm_tile_begin(const Gemm *gemm, Val column);
/* Whether the machine multiplies and adds pairs of the operands, exactly. */
bool gemm_may_pair(const Gemm *gemm);
/* Joins the steps of k of the packed rows or columns in pairs. The last one of an odd number gets a
 * zero beside it. */
void gemm_pair_rows(Gemm *gemm);
void gemm_pair_columns(Gemm *gemm);
/* The vector of pairs of two steps of k. */
Val gemm_pair(const Gemm *gemm, Val first, Val second);
/* sum + the products of both halves of each pair */
Val gemm_add_pairs(const Gemm *gemm, Val a, Val b, Val sum);
/* Multiplies the block of k into the panel's partial results, for all columns. */
void gemm_tiles(Gemm *gemm);

/* Tile registers. A function configures them before their first use, and releases them at its end.
 * Elements of one row or column lie side by side, as many as fit 32 bits. After packing, zeros
 * follow the last step of k, up to a whole tile. */
void gemm_amx_begin(const Codegen *k);
void gemm_amx_end(const Codegen *k);
void gemm_amx_end_rows(const Gemm *gemm);
void gemm_amx_join_columns(const Gemm *gemm);
/* Packs the columns of the block of k from panels in memory. */
void gemm_amx_take_panels(Gemm *gemm);
/* gemm_tiles by tile registers. */
void gemm_amx_tiles(const Gemm *gemm);

/* Multiplies the image's rows of batches of the unit, [from, to) of one image, into their partial
 * results, all of K. Changes the position. */
void gemm_sweep(Gemm *gemm, Val from, Val to);

/* gemm_tiles without packed columns. */
void gemm_stream(Gemm *gemm);

/* Chooses how results are stored. `is_alone`: the launch has no other kernel. */
void gemm_choose_stores(Gemm *gemm, bool is_alone);
/* Finishes and stores rows [first, end), whose partial results begin at row `partials`, in vectors
 * along the rows. */
void gemm_turn_stores(Gemm *gemm, Val first, Val end, Val partials);

/* The GEMM's point at row `number` of the panel, for `lanes` columns. What the results need and is
 * invariant along the row is computed once, unless there is one lane. */
Point gemm_row_point(const Gemm *gemm, Val number, uint32_t lanes);

/* The address of element `at` of partial results, and accesses of `lanes` elements there, which are
 * aligned to a vector. Then the same of packed operands. */
Val gemm_element(const Gemm *gemm, Val base, Val at);
Val gemm_element_by(const Gemm *gemm, Val base, int64_t elems);
Val gemm_load(const Gemm *gemm, Val pointer);
void gemm_store(const Gemm *gemm, Val pointer, Val value);
Val gemm_packed_element(const Gemm *gemm, Val base, Val at);
Val gemm_packed_load(const Gemm *gemm, Val pointer);
void gemm_packed_store(const Gemm *gemm, Val pointer, Val value);
/* So many lanes of a strip, which may begin at any element. */
Val gemm_load_strip(const Gemm *gemm, Val pointer, uint32_t lanes);

/* Whether the operand is a load whose index depends on no other load. Then its element has this
 * address, even at a point that does not exist. */
bool gemm_operand_is_plain(const Gemm *gemm, const GemmOperand *operand);
Val gemm_operand_address(const Gemm *gemm, const GemmOperand *operand, Point *point);

/* A point of the unit for an operand's lanes, and the operand's elements there. */
Point gemm_operand_point(const Gemm *gemm, const GemmOperand *operand);
Val gemm_operand_lanes(const Gemm *gemm, const GemmOperand *operand, Point *point);
/* min(at, extent - 1) */
Val gemm_clamp(Lower *lower, Val at, DimId extent);
/* A mask of those of `lanes` elements from `at` that are below `end`; `end` may be before `at`. */
Val gemm_lanes_before(const Gemm *gemm, Val at, Val end);

#endif
