/* Packing the operands of a CPU GEMM. See gemm.h.
 *
 * An operand is a scalar program. It is evaluated in vectors along that of its two axes that is
 * contiguous in memory. Rows are packed as they come, in one of two layouts. Columns are needed as
 * vectors along their own axis, so vectors along k are transposed in registers. Rows of im2col are
 * contiguous along k in runs; the last vector of a run has lanes without an element, and the next
 * run overwrites what it stores there. */
#include "codegen/cpu_gemm/gemm.h"
#include "codegen/cpu/strips.h"
#include "base/arith.h"

/* Layout. */

/* The windows of strips of which vectors read up to `n`: those past the edge are in the next strip.
 */
static uint32_t windows_of(const Gemm *gemm, uint32_t n) {
    int64_t extent;
    bool is_known = dim_is_const(lower_dims(gemm->lower), gemm->column.extent, &extent);
    return is_known ? (uint32_t)min_i64(n, extent) : n;
}

/* A panel of rows begins at any row, a panel of columns at a multiple of lanes. Rows along k are
 * padded, so that they do not share a cache set. */
void gemm_choose_layout(Gemm *gemm) {
    const Lower *lower = gemm->lower;
    GemmOperand *row = &gemm->row, *column = &gemm->column;
    Arena *arena = lower->k->arena;
    bool must = gemm->is_streamed || gemm->has_amx;
    row->lanes = gemm->has_amx ? CPU_AMX_ROW_LANES : gemm->lanes;
    column->lanes = gemm->lanes;
    row->pack = cpu_pack_rows(arena, lower->kernel, row->value, row->axis, row->lanes, must);
    column->pack =
        cpu_pack_columns(arena, lower->kernel, column->value, column->axis, gemm->lanes, must);
    if (gemm->is_streamed && column->pack.way == PACK_RUNS_OF_K)
        column->pack =
            (CpuPack){.way = PACK_OWN_AXIS}; /* its vectors begin at multiples of lanes */
    GemmOperand *left = row->axis == gemm_axis_m(lower->kernel) ? row : column;
    CpuStrips strips;
    if (lower->variant->sched.cpu_gemm.has_strips &&
        cpu_pack_has_strips(arena, lower->kernel, gemm->lanes, &strips)) {
        left->pack = (CpuPack){.way = PACK_STRIPS};
        left->strips = arena_copy(arena, &strips, sizeof strips);
        uint32_t step = left == row ? gemm->n_tile_rows : gemm->tile_columns;
        int64_t room = left == row ? gemm->units.block_rows : gemm->units.block_columns;
        uint32_t n = (uint32_t)round_up(room, step);
        if (left == column) n = windows_of(gemm, n);
        gemm->strip_pitch = cpu_strips_pitch(&strips, n, gemm->lanes);
        CpuSweep sweep;
        if (lower->variant->sched.cpu_gemm.sweeps &&
            cpu_sweep_find(arena, lower->kernel, left->strips, &sweep))
            gemm->sweep = arena_copy(arena, &sweep, sizeof sweep);
    }
    row->is_along_k = row->pack.way != PACK_OWN_AXIS;
    column->is_along_k = column->pack.way != PACK_OWN_AXIS && !cpu_pack_is_single(column->pack) &&
                         !cpu_pack_has_places(column->pack);
    uint32_t past = gemm->has_amx ? AMX_ROW_BYTES / dtype_bytes(gemm->packed) : gemm->lanes;
    gemm->panel_depth = gemm->depth + (column->is_along_k || gemm->has_amx ? past : 0);
    gemm->row_stride = row->is_along_k ? (uint32_t)round_up(gemm->depth, gemm->lanes) + past : 1;
    gemm->k_stride = row->is_along_k ? 1 : (uint32_t)round_up(gemm->n_tile_rows, gemm->lanes);
}

int64_t gemm_row_panel_elems(const Gemm *gemm) {
    return gemm->row.is_along_k ? (int64_t)gemm->row_stride * gemm->n_tile_rows
                                : (int64_t)gemm->k_stride * gemm->depth;
}

Point gemm_operand_point(const Gemm *gemm, const GemmOperand *operand) {
    Point point = point_inside(&gemm->point);
    point.lanes = operand->lanes;
    point.lane_axis = operand->is_along_k ? gemm->k_axis : operand->axis;
    bool begins_anywhere = operand == &gemm->row && !operand->is_along_k;
    begins_anywhere = begins_anywhere || (operand->is_along_k && operand->piece.is_any);
    point.block = operand->pack.run ? operand->pack.run : begins_anywhere ? INDEX_ANY_START : 0;
    point.piece = operand->piece;
    return point;
}

Val gemm_operand_lanes(const Gemm *gemm, const GemmOperand *operand, Point *point) {
    Val value = point_lanes(point, operand->value);
    return convert_value(gemm->lower->k, value, operand->dtype, gemm->packed);
}

/* Packs each piece of k by itself, as far as it is in the block of k. */
typedef struct PackPieces {
    Gemm *gemm;
    GemmOperand *operand;
    void (*pack)(Gemm *gemm);
} PackPieces;

static void pack_piece(void *user, const PointPiece *piece, CpuSpan span) {
    const PackPieces *pieces = user;
    pieces->operand->piece = *piece;
    pieces->operand->span = span;
    pieces->pack(pieces->gemm);
}

static void each_piece(Gemm *gemm, GemmOperand *operand, void (*pack)(Gemm *gemm)) {
    PackPieces pieces = {gemm, operand, pack};
    CpuCuts cuts = cpu_find_cuts(gemm->lower, &operand->value, 1, gemm->k_axis);
    cpu_each_piece(gemm->lower, &cuts, (CpuSpan){gemm->k_begin, gemm->n_k}, pack_piece, &pieces);
}

void gemm_each_k_step(const Gemm *gemm, const GemmOperand *operand, GemmRun *run, CpuStep *step,
                      void *user) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    bool is_whole =
        !operand->piece.is_any && cpu_is_multiple(lower, gemm->k_extent, operand->lanes);
    if (!operand->pack.run) {
        cpu_each_step(lower, operand->span.begin, operand->span.n, operand->lanes, is_whole, step,
                      user);
        return;
    }
    Val end = k_add(k, operand->span.begin, operand->span.n);
    Val n_run = lower_index_const(lower, operand->pack.run);
    Val before = k_urem(k, operand->span.begin, n_run);
    Loop loop = loop_begin(k, k_sub(k, operand->span.begin, before), end, operand->pack.run);
    Val is_first = k_slt(k, loop.index, operand->span.begin), next = k_add(k, loop.index, n_run);
    Val from = k_select(k, is_first, operand->span.begin, loop.index);
    Val to = k_select(k, k_slt(k, end, next), end, next);
    is_whole = is_whole && operand->pack.run % operand->lanes == 0;
    if (run) run(user, loop.index);
    cpu_each_step(lower, from, k_sub(k, to, from), operand->lanes, is_whole, step, user);
    loop_end(k, &loop);
}

/* Rows. */

typedef struct PackRow {
    Gemm *gemm;
    Val base;          /* see gemm_offsets_base, or NULL */
    Point point, next; /* of the row, and of the row that is packed into its place next */
    Point in_run;      /* `point`, in a run */
    Val packed;        /* address of the row's element at k_begin */
} PackRow;

static void pack_row_run(void *user, Val begin) {
    PackRow *pack = user;
    pack->in_run = point_inside(&pack->point);
    if (!pack->base) point_enter_block(&pack->in_run, pack->gemm->row.value, begin);
}

/* Runs of an image are packed again for other windows, so they are in a cache. */
static void pack_row_step(void *user, Val at, Val mask) {
    const PackRow *pack = user;
    const Gemm *gemm = pack->gemm;
    Point point = point_inside(gemm->row.pack.run ? &pack->in_run : &pack->point);
    point.mask = mask;
    point.axis[gemm->k_axis] = at;
    Val at_k = k_sub(gemm->lower->k, at, gemm->k_begin);
    Val values = pack->base ? gemm_offset_lanes(gemm, &gemm->row, pack->base, at, mask)
                            : gemm_operand_lanes(gemm, &gemm->row, &point);
    Val to = gemm_packed_element(gemm, pack->packed, at_k);
    if (gemm->row.pack.run || gemm->row.piece.is_any)
        k_store_aligned(gemm->lower->k, values, to, dtype_bytes(gemm->packed));
    else
        gemm_packed_store(gemm, to, values);
    if (gemm->row.pack.run || !gemm_operand_is_plain(gemm, &gemm->row)) return;
    Point next = point_inside(&pack->next);
    next.axis[gemm->k_axis] = at;
    cpu_prefetch(gemm->lower->k, gemm_operand_address(gemm, &gemm->row, &next), 2);
}

static void pack_rows_along_k(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Loop loop = loop_over(k, lower_index_const(lower, gemm->n_tile_rows), 1);
    PackRow pack = {.gemm = gemm, .point = gemm_operand_point(gemm, &gemm->row)};
    Val row = k_add(k, gemm->panel_begin, loop.index);
    pack.point.axis[gemm->row.axis] = gemm_clamp(lower, row, gemm->row.extent);
    if (gemm->row.offsets) pack.base = gemm_offsets_base(gemm, &gemm->row, &pack.point);
    pack.next = point_inside(&pack.point);
    pack.next.axis[gemm->row.axis] = k_addi(k, row, gemm->n_tile_rows);
    pack.packed = gemm_packed_element(gemm, gemm->rows, k_muli(k, loop.index, gemm->row_stride));
    gemm_each_k_step(gemm, &gemm->row, pack_row_run, pack_row_step, &pack);
    loop_end(k, &loop);
}

/* Steps of k are far apart, so a CPU does not foresee what the next panel reads. Its first elements
 * are mostly in the line of this one's last. */
static void prefetch_next_panel(const Gemm *gemm, const Point *at_k) {
    if (!gemm_operand_is_plain(gemm, &gemm->row)) return;
    Point next = point_inside(at_k);
    int64_t last = 2 * (int64_t)gemm->n_tile_rows - 1;
    next.axis[gemm->row.axis] = k_addi(gemm->lower->k, gemm->panel_begin, last);
    cpu_prefetch(gemm->lower->k, gemm_operand_address(gemm, &gemm->row, &next), 2);
}

static void pack_rows_along_rows(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = gemm->k_stride / gemm->lanes;
    Val *masks = arena_array(k->arena, Val, n);
    Val extent = lower_dim(lower, gemm->row.extent);
    for (uint32_t v = 0; v < n; v++)
        masks[v] =
            gemm_lanes_before(gemm, k_addi(k, gemm->panel_begin, (int64_t)v * gemm->lanes), extent);
    Loop loop =
        loop_begin(k, gemm->row.span.begin, k_add(k, gemm->row.span.begin, gemm->row.span.n), 1);
    Val step = k_sub(k, loop.index, gemm->k_begin);
    Val packed = gemm_packed_element(gemm, gemm->rows, k_muli(k, step, gemm->k_stride));
    Point at_k = gemm_operand_point(gemm, &gemm->row);
    at_k.axis[gemm->k_axis] = loop.index;
    prefetch_next_panel(gemm, &at_k);
    for (uint32_t v = 0; v < n; v++) {
        Point point = point_inside(&at_k);
        point.axis[gemm->row.axis] = k_addi(k, gemm->panel_begin, (int64_t)v * gemm->lanes);
        point.mask = masks[v];
        Val to = gemm_packed_element(gemm, packed, lower_index_const(lower, v * gemm->lanes));
        gemm_packed_store(gemm, to, gemm_operand_lanes(gemm, &gemm->row, &point));
    }
    loop_end(k, &loop);
}

static void pack_rows(Gemm *gemm) {
    if (gemm->row.is_along_k)
        pack_rows_along_k(gemm);
    else
        pack_rows_along_rows(gemm);
}

void gemm_pack_rows(Gemm *gemm) {
    if (cpu_pack_has_places(gemm->row.pack) || gemm->has_made_rows) return;
    each_piece(gemm, &gemm->row, pack_rows);
    if (gemm->has_amx) gemm_amx_end_rows(gemm);
    if (gemm->has_pairs) gemm_pair_rows(gemm);
}

/* Columns along their own axis. */

/* Packs one step of k of the panel that begins `offset` columns into the unit. */
static void pack_panel_step(Gemm *gemm, const Point *at_k, Val row, Val offset, Val *masks) {
    const Codegen *k = gemm->lower->k;
    Val first = k_add(k, gemm->column_begin, offset);
    Val panel = k_muli(k, offset, gemm->panel_depth);
    Val at = k_add(k, panel, k_muli(k, row, gemm->tile_columns));
    for (uint32_t v = 0; v < gemm->n_vectors; v++) {
        Point point = point_inside(at_k);
        point.axis[gemm->column.axis] = k_addi(k, first, (int64_t)v * gemm->lanes);
        point.mask = masks ? masks[v] : NULL;
        Val value = gemm_operand_lanes(gemm, &gemm->column, &point);
        Val to = gemm_packed_element(gemm, gemm->columns, k_addi(k, at, v * gemm->lanes));
        gemm_packed_store(gemm, to, value);
    }
}

static void pack_columns_along_columns(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val rest = k_uremi(k, gemm->n_columns, gemm->tile_columns);
    Val n_full = k_sub(k, gemm->n_columns, rest);
    Val is_left = k_nei(k, rest, 0);
    Val *masks = arena_array(k->arena, Val, gemm->n_vectors);
    for (uint32_t v = 0; v < gemm->n_vectors; v++)
        masks[v] = gemm_lanes_before(gemm, lower_index_const(lower, v * gemm->lanes), rest);
    Loop loop = loop_begin(k, gemm->column.span.begin,
                           k_add(k, gemm->column.span.begin, gemm->column.span.n), 1);
    Val step = k_sub(k, loop.index, gemm->k_begin);
    Point at_k = gemm_operand_point(gemm, &gemm->column);
    at_k.axis[gemm->k_axis] = loop.index;
    point_prepare(&at_k, &gemm->column.value, 1, 1u << gemm->column.axis);
    Loop panels = loop_over(k, n_full, gemm->tile_columns);
    pack_panel_step(gemm, &at_k, step, panels.index, NULL);
    loop_end(k, &panels);
    if (!cpu_is_multiple(lower, gemm->column.extent, gemm->tile_columns)) {
        If left = if_begin(k, is_left);
        pack_panel_step(gemm, &at_k, step, n_full, masks);
        if_end(k, &left);
    }
    loop_end(k, &loop);
}

/* Columns along k. */

typedef struct PackSquare {
    Gemm *gemm;
    Val offset; /* of the first column in the unit */
    Val packed; /* address of its element at k_begin */
    Val square; /* scratch [lanes,lanes] */
    Val bases;  /* [lanes]: see gemm_offsets_base; or NULL */
} PackSquare;

/* A point of the square's column `number`. */
static Point square_point(const PackSquare *pack, Val number) {
    Gemm *gemm = pack->gemm;
    const Codegen *k = gemm->lower->k;
    Point point = gemm_operand_point(gemm, &gemm->column);
    Val column = k_add(k, gemm->column_begin, k_add(k, pack->offset, number));
    point.axis[gemm->column.axis] = gemm_clamp(gemm->lower, column, gemm->column.extent);
    return point;
}

/* Columns past the edge have the base of the last one. */
static void find_bases(const PackSquare *pack) {
    const Gemm *gemm = pack->gemm;
    const Codegen *k = gemm->lower->k;
    Loop loop = loop_over(k, lower_index_const(gemm->lower, gemm->lanes), 1);
    Point point = square_point(pack, loop.index);
    Val base = gemm_offsets_base(gemm, &gemm->column, &point);
    k_store_aligned(k, base, k_gep(k, k->i64, pack->bases, loop.index), 8);
    loop_end(k, &loop);
}

static void pack_square_step(void *user, Val at, Val mask) {
    const PackSquare *pack = user;
    Gemm *gemm = pack->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = gemm->lanes;
    Loop loop = loop_over(k, lower_index_const(lower, n), 1);
    Val values;
    if (pack->bases) {
        Val base = k_load(k, k->i64, k_gep(k, k->i64, pack->bases, loop.index));
        values = gemm_offset_lanes(gemm, &gemm->column, base, at, mask);
    } else {
        Point point = square_point(pack, loop.index);
        point.axis[gemm->k_axis] = at;
        point.mask = mask;
        values = gemm_operand_lanes(gemm, &gemm->column, &point);
    }
    gemm_packed_store(gemm, gemm_packed_element(gemm, pack->square, k_muli(k, loop.index, n)),
                      values);
    loop_end(k, &loop);
    Val *vectors = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++)
        vectors[i] =
            gemm_packed_load(gemm, gemm_packed_element(gemm, pack->square,
                                                       lower_index_const(lower, (int64_t)i * n)));
    k_transpose(k, vectors, n);
    Val row = k_sub(k, at, gemm->k_begin);
    Val to = gemm_packed_element(gemm, pack->packed, k_muli(k, row, gemm->tile_columns));
    for (uint32_t i = 0; i < n; i++)
        gemm_packed_store(
            gemm, gemm_packed_element(gemm, to, lower_index_const(lower, i * gemm->tile_columns)),
            vectors[i]);
}

static void pack_columns_along_k(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    int64_t n_square = (int64_t)gemm->lanes * gemm->lanes;
    PackSquare pack = {.gemm = gemm,
                       .square = cpu_array_new(lower, gemm->packed, false, n_square).values};
    if (gemm->column.offsets) pack.bases = cpu_array_new(lower, DT_I64, false, gemm->lanes).values;
    Val width = lower_index_const(lower, gemm->tile_columns);
    Val n = k_addi(k, gemm->n_columns, (int64_t)gemm->tile_columns - 1);
    n = k_sub(k, n, k_urem(k, n, width));
    Loop loop = loop_over(k, n, gemm->lanes);
    pack.offset = loop.index;
    Val in_panel = k_urem(k, loop.index, width);
    Val panel = k_sub(k, loop.index, in_panel);
    Val at = k_add(k, k_muli(k, panel, gemm->panel_depth), in_panel);
    pack.packed = gemm_packed_element(gemm, gemm->columns, at);
    if (pack.bases) find_bases(&pack);
    gemm_each_k_step(gemm, &gemm->column, NULL, pack_square_step, &pack);
    loop_end(k, &loop);
}

static void pack_columns(Gemm *gemm) {
    if (gemm->column.is_along_k)
        pack_columns_along_k(gemm);
    else
        pack_columns_along_columns(gemm);
}

void gemm_pack_columns(Gemm *gemm) {
    if (cpu_pack_has_places(gemm->column.pack)) return;
    each_piece(gemm, &gemm->column, pack_columns);
    if (gemm->has_amx) gemm_amx_join_columns(gemm);
    if (gemm->has_pairs) gemm_pair_columns(gemm);
}

/* Strips, see template/cpu_strips.h and strips.h. Strip s of the tap row (outer, inner) is at
 * ((outer * n + s) * run + inner) * strip_pitch. Its element i is that of its first tap at the i-th
 * neighbour along m. */

static int64_t strips_of_block(const Gemm *gemm, const CpuStrips *strips) {
    int64_t n_outer = gemm->depth / cpu_strips_step(strips);
    return (n_outer < 1 ? 1 : n_outer) * strips->n * strips->run;
}

int64_t gemm_strips_elems(const Gemm *gemm, const CpuStrips *strips) {
    return strips_of_block(gemm, strips) * gemm->strip_pitch;
}

Val gemm_strip_offsets(const Gemm *gemm, const CpuStrips *strips) {
    const Codegen *k = gemm->lower->k;
    int64_t n = gemm->depth < strips->depth ? gemm->depth : strips->depth;
    Val *values = arena_array(k->arena, Val, (size_t)n);
    for (int64_t at = 0; at < n; at++) {
        int64_t inner = at % strips->run, tap = at / strips->run % strips->n_taps;
        int64_t outer = at / cpu_strips_step(strips);
        int64_t strip = (outer * strips->n + strips->strip_of[tap]) * strips->run + inner;
        values[at] = k_int(k->i64, strip * gemm->strip_pitch + strips->shift_of[tap]);
    }
    return k_constant_array(k, values, (uint32_t)n, "strips");
}

/* Steps of k between a row of the image and the one that is prefetched. */
static int64_t steps_ahead(const Gemm *gemm, const CpuStrips *strips) {
    enum { VECTORS = 64 };
    int64_t n_rows = strips_of_block(gemm, strips) / strips->run;
    int64_t n = n_rows * (gemm->strip_pitch / gemm->lanes);
    return n < VECTORS ? VECTORS / n : 1;
}

/* Packs the strips of the point's batch. */
static void pack_strips(const Gemm *gemm, const GemmOperand *operand, const Point *batch,
                        Val strips_memory) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = operand->strips;
    bool is_row = operand == &gemm->row;
    Val begin = is_row ? gemm->row_begin : gemm->column_begin;
    Val n = is_row ? k_sub(k, gemm->row_end, begin) : gemm->n_columns;
    int64_t room = is_row ? gemm->units.block_rows : gemm->units.block_columns, extent;
    if (dim_hi(lower_dims(lower), operand->extent) <= room) begin = lower_index_const(lower, 0);
    if (dim_is_const(lower_dims(lower), operand->extent, &extent) && extent <= room)
        n = lower_index_const(lower, extent);
    Val n_outer = k_udivi(k, gemm->n_k, cpu_strips_step(strips));
    Loop inner = loop_over(k, lower_index_const(lower, strips->is_turned ? 1 : strips->run), 1);
    Loop outer = loop_over(k, n_outer, 1);
    Val number = k_muli(k, outer.index, strips->n * strips->run);
    Val memory = k_muli(k, k_add(k, number, inner.index), gemm->strip_pitch);
    StripRow row = {.lower = lower,
                    .width = 1,
                    .strips = strips,
                    .value = operand->value,
                    .acc = gemm->acc,
                    .axis = operand->axis,
                    .lanes = gemm->lanes,
                    .outside = strips->outside,
                    .inside = strips->inside,
                    .point = point_inside(batch),
                    .begin = begin,
                    .n = n,
                    .memory = gemm_element(gemm, strips_memory, memory),
                    .pitch = gemm->strip_pitch,
                    .step = (uint32_t)strips->run * gemm->strip_pitch,
                    .steps_ahead = steps_ahead(gemm, strips)};
    Val at_k = k_add(k, k_muli(k, outer.index, cpu_strips_step(strips)), inner.index);
    row.point.axis[gemm->k_axis] = k_add(k, gemm->k_begin, at_k);
    (strips->is_turned ? strips_pack_turned : strips_pack_row)(&row);
    loop_end(k, &outer);
    loop_end(k, &inner);
}

void gemm_pack_strips(const Gemm *gemm, const GemmOperand *operand) {
    const Codegen *k = gemm->lower->k;
    Val memory = operand == &gemm->row ? gemm->rows : gemm->columns;
    if (gemm->n_batches == 1) {
        pack_strips(gemm, operand, &gemm->point, memory);
        return;
    }
    Loop loop = loop_over(k, lower_index_const(gemm->lower, gemm->n_batches), 1);
    Point batch = point_inside(&gemm->point);
    gemm_set_batch(gemm, loop.index, &batch);
    Val at = k_muli(k, loop.index, gemm_strips_elems(gemm, operand->strips));
    pack_strips(gemm, operand, &batch, gemm_element(gemm, memory, at));
    loop_end(k, &loop);
}
