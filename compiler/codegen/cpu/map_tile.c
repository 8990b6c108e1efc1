/* CPU maps in tiles. See template/cpu_map_tile.h.
 *
 * A unit is a tile. First it computes the turned values, in vectors along `in`, a square at a time:
 * the square is turned in registers, and goes to an array whose rows lie along `out`. Then it walks
 * along `in`, and computes and stores the rest as any map does.
 *
 * The last square of a piece begins earlier rather than have a mask: a CPU does not prefetch for
 * masked loads. */
#include "codegen/cpu/cpu.h"
#include "template/cpu_map_tile.h"

typedef struct Tile {
    Lower *lower;
    const Stage *stage;
    uint32_t in, out, lanes, length; /* length: of a row of the arrays */
    CpuMapTurned turned;
    CpuArray arrays[CPU_MAP_TILE_MOST_TURNED], squares[CPU_MAP_TILE_MOST_TURNED];
    Point point; /* of the unit: the axes outside the tile */
    CpuSpan along_in, along_out;
    Val column;       /* of a square: its first element along `out` */
    PointPiece piece; /* of `in` that is computed */
} Tile;

/* Sets the axis to a tile's part of it. */
static CpuSpan part_of(const Tile *tile, uint32_t axis, Val number, uint32_t length) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    Val begin = k_muli(k, number, length);
    Val rest = k_sub(k, lower_extent(lower, axis), begin);
    return (CpuSpan){begin, cpu_at_most(lower, rest, length)};
}

/* Units are numbered by the axes in their order, `in` and `out` by their tiles. */
static void set_unit(Tile *tile, Val number) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    MapTileSched sched = lower->variant->sched.map_tile;
    tile->point = point_new(lower, 1);
    for (uint32_t axis = lower->kernel->n_parallel; axis-- > 0;) {
        DimId extent = kernel_axis_extent(lower->kernel, axis);
        uint32_t length = axis == tile->in ? sched.tile_m : axis == tile->out ? sched.tile_n : 1;
        if (length > 1) extent = dim_ceil_div(lower_dims(lower), extent, length);
        Val n = lower_divisor(lower, extent), own = k_urem(k, number, n);
        number = k_udiv(k, number, n);
        tile->point.axis[axis] = own;
        if (axis == tile->in) tile->along_in = part_of(tile, axis, own, length);
        if (axis == tile->out) tile->along_out = part_of(tile, axis, own, length);
    }
    uint32_t own = 1u << tile->in | 1u << tile->out;
    CpuRoots roots = cpu_stage_roots(lower, tile->stage);
    point_prepare(&tile->point, roots.ids, roots.n, own);
}

static Val element(const Tile *tile, Val row, Val column) {
    const Codegen *k = tile->lower->k;
    return k_add(k, k_muli(k, row, tile->length), column);
}

/* Turns the squares of the elements of `in` from `at` on. */
static void turn_squares(const Tile *tile, Val at) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    Val *vectors = arena_array(k->arena, Val, tile->lanes);
    Val row = k_sub(k, at, tile->along_in.begin), column = tile->column;
    for (uint32_t i = 0; i < tile->turned.n; i++) {
        for (uint32_t r = 0; r < tile->lanes; r++)
            vectors[r] =
                cpu_array_load(lower, &tile->squares[i],
                               lower_index_const(lower, (int64_t)r * tile->lanes), tile->lanes)
                    .value;
        k_transpose(k, vectors, tile->lanes);
        for (uint32_t r = 0; r < tile->lanes; r++)
            cpu_array_store(lower, &tile->arrays[i], element(tile, k_addi(k, row, r), column),
                            (Acc){.value = vectors[r]}, tile->lanes);
    }
}

/* Computes the turned values of `lanes` elements along `in` by as many along `out`. */
static void compute_square(const Tile *tile, Val at, Val mask) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    Val left = k_sub(k, tile->along_out.n, tile->column);
    Loop loop = loop_over(k, cpu_at_most(lower, left, tile->lanes), 1);
    Point point = point_inside(&tile->point);
    point.lanes = tile->lanes;
    point.lane_axis = tile->in;
    point.block = INDEX_ANY_START;
    point.piece = tile->piece;
    point.mask = mask;
    point.axis[tile->in] = at;
    point.axis[tile->out] = k_add(k, tile->along_out.begin, k_add(k, tile->column, loop.index));
    for (uint32_t i = 0; i < tile->turned.n; i++) {
        Val value = point_lanes(&point, tile->turned.ids[i]);
        cpu_array_store(lower, &tile->squares[i], k_muli(k, loop.index, tile->lanes),
                        (Acc){.value = value}, tile->lanes);
    }
    loop_end(k, &loop);
    turn_squares(tile, at);
}

/* Whether no piece is shorter than a vector: the axis is one piece, of whole vectors. */
static bool has_whole_vectors(const Tile *tile) {
    const Lower *lower = tile->lower;
    const MapTileSched *sched = &lower->variant->sched.map_tile;
    return !tile->piece.is_any && sched->tile_m % tile->lanes == 0 &&
           cpu_is_multiple(lower, kernel_axis_extent(lower->kernel, tile->in), tile->lanes);
}

/* A piece shorter than a vector has a mask. What its square computes past the piece, the next piece
 * replaces. */
static void compute_piece(void *user, const PointPiece *piece, CpuSpan span) {
    Tile tile = *(const Tile *)user;
    Lower *lower = tile.lower;
    const Codegen *k = lower->k;
    tile.piece = *piece;
    if (tile.lanes == 1 || has_whole_vectors(&tile)) {
        Loop loop = loop_over(k, span.n, tile.lanes);
        compute_square(&tile, k_add(k, span.begin, loop.index), NULL);
        loop_end(k, &loop);
        return;
    }
    Val is_long = k_uge(k, span.n, lower_index_const(lower, tile.lanes));
    Val last = k_subi(k, span.n, tile.lanes);
    Loop loop = loop_over(k, k_select(k, is_long, span.n, lower_index_const(lower, 0)), tile.lanes);
    Val at = k_select(k, k_ult(k, loop.index, last), loop.index, last);
    compute_square(&tile, k_add(k, span.begin, at), NULL);
    loop_end(k, &loop);
    If is_short = if_begin(k, k_xori(k, is_long, 1));
    compute_square(&tile, span.begin, cpu_lanes_below(lower, span.n, tile.lanes));
    if_end(k, &is_short);
}

static void compute_turned(Tile *tile) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    Loop columns = loop_over(k, tile->along_out.n, tile->lanes);
    tile->column = columns.index;
    CpuCuts cuts = cpu_find_cuts(lower, tile->turned.ids, tile->turned.n, tile->in);
    cpu_each_piece(lower, &cuts, tile->along_in, compute_piece, tile);
    loop_end(k, &columns);
}

static void store_step(void *user, Val at, Val mask) {
    const Tile *tile = user;
    const Codegen *k = tile->lower->k;
    Point point = cpu_lane_point(&tile->point, tile->lanes, at, mask);
    Val row = k_sub(k, point.axis[tile->in], tile->along_in.begin);
    Val from = element(tile, row, k_sub(k, at, tile->along_out.begin));
    for (uint32_t i = 0; i < tile->turned.n; i++)
        point.values[tile->turned.ids[i]] =
            cpu_array_load(tile->lower, &tile->arrays[i], from, tile->lanes).value;
    point_store_all(&point, tile->stage->stores.data, tile->stage->stores.n);
}

static void store_rows(const Tile *tile) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    bool is_whole =
        cpu_is_multiple(lower, kernel_axis_extent(lower->kernel, tile->out), tile->lanes);
    CpuRoots roots = cpu_stage_roots(lower, tile->stage);
    Tile row = *tile;
    Loop rows = loop_over(k, tile->along_in.n, 1);
    row.point = point_inside(&tile->point);
    row.point.axis[tile->in] = k_add(k, tile->along_in.begin, rows.index);
    point_prepare(&row.point, roots.ids, roots.n, 1u << tile->out);
    cpu_each_step(lower, tile->along_out.begin, tile->along_out.n, tile->lanes, is_whole,
                  store_step, &row);
    loop_end(k, &rows);
}

void emit_cpu_map_tile(Lower *lower) {
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    Tile tile = {.lower = lower,
                 .stage = &lower->kernel->stages.data[0],
                 .in = sched->map_tile.axis_in,
                 .out = lower->lane_axis,
                 .lanes = sched->lanes,
                 .length = sched->map_tile.tile_n,
                 .turned = cpu_map_tile_turned(k->arena, lower->kernel, sched)};
    for (uint32_t i = 0; i < tile.turned.n; i++) {
        Dtype dtype = scalar_get(lower->kernel->scalars, tile.turned.ids[i])->dtype;
        int64_t n_rows = (int64_t)sched->map_tile.tile_m + tile.lanes;
        int64_t n_elems = n_rows * sched->map_tile.tile_n;
        tile.arrays[i] = cpu_array_new(lower, dtype, false, n_elems);
        tile.squares[i] = cpu_array_new(lower, dtype, false, (int64_t)tile.lanes * tile.lanes);
    }
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    set_unit(&tile, units.index);
    compute_turned(&tile);
    store_rows(&tile);
    loop_end(k, &units);
}
