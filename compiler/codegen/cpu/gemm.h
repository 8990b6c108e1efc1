/* The parts of the CPU GEMM: what is packed how, and the register tile.
 *
 * One operand is packed in panels of a few rows, from which the tile takes one element after the
 * other; the other in panels of a few vectors, whose lanes are columns of the tile. As a rule rows
 * go along m and columns along n; where n is shorter than a vector it is the other way round.
 * Panels, partial results and all else on the stack are in the accumulator's dtype. */
#ifndef FUSEC_CODEGEN_CPU_GEMM_H
#define FUSEC_CODEGEN_CPU_GEMM_H

#include "codegen/cpu/cpu.h"

typedef struct GemmOperand {
    ScalarId value;
    Dtype dtype;
    uint32_t axis;   /* m or n */
    DimId extent;    /* of that axis */
    bool is_along_k; /* lanes go along k, not along its own axis, while it is packed */
} GemmOperand;

typedef struct Gemm {
    Lower *lower;
    Dtype acc;
    GemmOperand row, column;
    uint32_t k_axis;
    DimId k_extent;
    uint32_t lanes;
    bool is_streamed; /* columns are used from where they lie: a unit has one panel of few rows */
    bool has_panels;  /* columns lie in panels in memory already: Kernel.panel_columns */
    Dtype panel_dtype;
    uint32_t n_tile_rows, n_vectors, tile_columns; /* tile_columns: n_vectors * lanes */
    uint32_t depth;                                /* of a block of k; a multiple of lanes */
    uint32_t block_rows, block_columns; /* of a unit: whole tiles, begin at a multiple of lanes */
    /* Element (r, k) of the packed rows is at r * row_stride + k * k_stride, element (k, c) of a
     * panel of columns at k * tile_columns + c, panels follow each other after `depth`
     * steps of k, those in memory after all of k; partial results are block_columns wide. */
    uint32_t row_stride, k_stride;
    Val rows, columns, partials;
    /* The place in the loops. */
    Point point;                   /* of the unit: the batch axes */
    Val batch;                     /* of the unit */
    Val row_begin, row_end;        /* of the unit */
    Val column_begin, n_columns;   /* of the unit */
    Val k_begin, n_k;              /* of the block of k */
    Val panel_begin, partials_row; /* of the panel of rows: its first row, and where in
                                    * the partial results that lies */
} Gemm;

/* Chooses how lanes go over each operand, and with that the layout of the packed rows. */
void gemm_choose_layout(Gemm *gemm);
/* Elements of the packed rows. */
int64_t gemm_row_panel_elems(const Gemm *gemm);
/* Packs [k_begin, + n_k) of the panel's rows, of the unit's columns. Rows and columns that do not
 * exist hold copies or zeros: no result comes of them. */
void gemm_pack_rows(Gemm *gemm);
void gemm_pack_columns(Gemm *gemm);
/* Sets `columns` to where the unit's first panel has the block of k in memory. */
void gemm_find_panels(Gemm *gemm);
/* Folds the block of k into the panel's partial results, all columns. */
void gemm_tiles(Gemm *gemm);

/* The same without packed columns. */
void gemm_stream(Gemm *gemm);

/* Element `at` of an array on the stack; `lanes` elements there, aligned as a vector is. */
Val gemm_element(const Gemm *gemm, Val base, Val at);
Val gemm_load(const Gemm *gemm, Val pointer);
void gemm_store(const Gemm *gemm, Val pointer, Val value);

/* Asks for the line at `pointer`, which may be any address, in a level of the cache: 1 or 2. */
void gemm_prefetch(const Gemm *gemm, Val pointer, uint32_t level);
/* Whether the operand is what memory holds, at an index that no memory tells. Then its element has
 * this address, also at a point that does not exist. */
bool gemm_operand_is_plain(const Gemm *gemm, const GemmOperand *factor);
Val gemm_operand_address(const Gemm *gemm, const GemmOperand *factor, Point *point);

/* A point in the unit for an operand's lanes, and the operand's elements there. */
Point gemm_operand_point(const Gemm *gemm, const GemmOperand *factor);
Val gemm_operand_lanes(const Gemm *gemm, const GemmOperand *factor, Point *point);
/* min(at, extent - 1) */
Val gemm_clamp(Lower *lower, Val at, DimId extent);
/* Which of `lanes` elements from `at` lie below `end`, which may be before `at`. */
Val gemm_lanes_before(const Gemm *gemm, Val at, Val end);
/* Transposes `lanes` vectors of `lanes` elements. */
void gemm_transpose(const Gemm *gemm, Val *vectors);

#endif
