/* Maps through tiles in shared memory. See template/map_tile.h.
 *
 * A thread starts all staged loads of its share of the tile [in,out] before it waits for the first.
 * If registers suffice, it also starts the loads of other tensors. After the barrier it walks along
 * `in`, with lanes along `out`. An extent may end inside a tile: an element outside reads element 0
 * and stores nothing. */
#include "codegen/gpu/gpu.h"
#include "template/map_tile.h"

/* A traversal of the tile: threads and their lanes lie along one axis, and steps go along the
 * other. */
typedef struct Way {
    uint32_t lanes, lane_axis, step_axis;
    uint32_t n_steps, step; /* number of steps, and elements from one to the next */
    Val lane, row;          /* i32: the thread's first element along either axis, in the tile */
} Way;

typedef struct Tile {
    Lower *lower;
    Point point;         /* the tile's first element */
    const Store *stores; /* all stores of the kernel */
    uint32_t n_stores;
    ScalarId *values; /* the scalars that they need */
    ScalarId staged[MAP_TILE_MAX_STAGED];
    uint32_t n_staged;
    MapTilePlace places[MAP_TILE_MAX_STAGED];
    Val arrays[MAP_TILE_MAX_STAGED]; /* base addresses in shared memory */
} Tile;

static Way way_new(const Tile *tile, bool is_in) {
    const Codegen *k = tile->lower->k;
    const Sched *sched = &tile->lower->variant->sched;
    uint32_t out = tile->lower->lane_axis;
    uint32_t length = is_in ? sched->map_tile.tile_m : sched->map_tile.tile_n;
    Way way = {.lanes = is_in ? sched->map_tile.lanes_in : sched->lanes,
               .lane_axis = is_in ? sched->map_tile.axis_in : out,
               .step_axis = is_in ? out : sched->map_tile.axis_in};
    uint32_t per_row = length / way.lanes;
    way.step = sched->threads / per_row;
    way.n_steps = map_tile_elems(sched) / way.lanes;
    Val thread = gpu_thread(k), n = k_i32(k, per_row);
    way.lane = k_muli(k, k_urem(k, thread, n), way.lanes);
    way.row = k_udiv(k, thread, n);
    return way;
}

/* The number of tiles along one of the two axes, or of elements along another axis. */
static DimId count_along(const Tile *tile, uint32_t axis) {
    Lower *lower = tile->lower;
    const Sched *sched = &lower->variant->sched;
    DimId extent = kernel_axis_extent(lower->kernel, axis);
    if (axis == lower->lane_axis)
        return dim_ceil_div(lower_dims(lower), extent, sched->map_tile.tile_n);
    if (axis == sched->map_tile.axis_in)
        return dim_ceil_div(lower_dims(lower), extent, sched->map_tile.tile_m);
    return extent;
}

static uint32_t length_along(const Tile *tile, uint32_t axis) {
    const Sched *sched = &tile->lower->variant->sched;
    return axis == tile->lower->lane_axis    ? sched->map_tile.tile_n
           : axis == sched->map_tile.axis_in ? sched->map_tile.tile_m
                                             : 1;
}

/* Points. */

static Val plus(const Tile *tile, Val index, Val i32) {
    return k_add(tile->lower->k, index, gpu_index(tile->lower, i32));
}

/* Whether the element's coordinate along the axis exists; NULL: it always does, because tiles
 * divide the extent. */
static Val is_inside(const Tile *tile, const Point *point, uint32_t axis) {
    Lower *lower = tile->lower;
    DimId extent = kernel_axis_extent(lower->kernel, axis);
    if (dim_multiple(lower_dims(lower), extent) % length_along(tile, axis) == 0) return NULL;
    return k_ult(lower->k, point->axis[axis], lower_dim(lower, extent));
}

static Val both(const Tile *tile, Val a, Val b) {
    if (!a || !b) return a ? a : b;
    return k_and(tile->lower->k, a, b);
}

/* The point of the thread's first step: coordinates only, no values. */
static Point point_begin(const Tile *tile, const Way *way) {
    Point point = point_inside(&tile->point);
    point.lanes = way->lanes;
    point.lane_axis = way->lane_axis;
    point.axis[way->lane_axis] = plus(tile, point.axis[way->lane_axis], way->lane);
    point.axis[way->step_axis] = plus(tile, point.axis[way->step_axis], way->row);
    point.active = is_inside(tile, &point, way->lane_axis);
    return point;
}

/* The point `step` steps after `first`, with the values that `first` has. */
static Point point_step(const Tile *tile, const Way *way, const Point *first, uint32_t step) {
    Point point = point_inside(first);
    Val on = lower_index_const(tile->lower, (int64_t)step * way->step);
    point.axis[way->step_axis] = k_add(tile->lower->k, point.axis[way->step_axis], on);
    point.active = both(tile, point.active, is_inside(tile, &point, way->step_axis));
    return point;
}

/* Finds the block's tile: along `out` first, then along `in`, then over the other axes. A grid has
 * 32 bits, so all divisions here fit 32 bits; 64-bit ones take much longer. */
static void find_tile(Tile *tile) {
    Lower *lower = tile->lower;
    const Codegen *k = lower->k;
    uint32_t axes[MAX_AXES] = {lower->lane_axis, lower->variant->sched.map_tile.axis_in}, n = 2;
    for (uint32_t axis = lower->kernel->n_parallel; axis-- > 0;)
        if (axis != axes[0] && axis != axes[1]) axes[n++] = axis;
    Val rest = gpu_block_number(lower);
    rest = k_index_cast(k, rest, k->i32);
    for (uint32_t i = 0; i < n; i++) {
        Val at = rest;
        if (i + 1 < n) {
            Val count = lower_divisor(lower, count_along(tile, axes[i]));
            count = k_index_cast(k, count, k->i32);
            at = k_urem(k, rest, count);
            rest = k_udiv(k, rest, count);
        }
        tile->point.axis[axes[i]] = k_muli(k, gpu_index(lower, at), length_along(tile, axes[i]));
    }
}

/* map_tile_offset for a row and column known only at run time. */
static Val offset_of(const Tile *tile, const MapTilePlace *place, Val row, Val column) {
    const Codegen *k = tile->lower->k;
    Val lanes = k_i32(k, place->lanes), words = k_i32(k, place->word_elems);
    Val twist = k_mul(k, k_udiv(k, row, lanes), k_i32(k, place->twist_step));
    twist = k_xor(k, twist, k_urem(k, row, lanes));
    twist = k_and(k, twist, k_i32(k, place->row_words - 1));
    Val word = k_xor(k, k_udiv(k, column, words), twist);
    Val at = k_mul(k, row, k_i32(k, place->row_words));
    at = k_mul(k, k_add(k, at, word), words);
    at = k_add(k, at, k_urem(k, column, words));
    return k_mul(k, at, k_i32(k, place->elem_bytes));
}

/* The address of an element. `offset` holds the bits of the thread's own coordinates; `row` and
 * `column` add bits that do not overlap with them. */
static Val element_at(const Tile *tile, uint32_t i, Val offset, uint32_t row, uint32_t column) {
    const Codegen *k = tile->lower->k;
    uint32_t more = map_tile_offset(&tile->places[i], row, column);
    Val at = k_xori(k, offset, more);
    return k_byte(k, tile->arrays[i], at);
}

static Dtype dtype_of(const Tile *tile, uint32_t i) {
    return scalar_get(tile->lower->kernel->scalars, tile->staged[i])->dtype;
}

static Val lane_of(const Codegen *k, Val value, uint32_t lane) {
    if (!k_is_vector(value)) return value;
    return k_extract(k, value, lane);
}

/* Writes the lanes of a value to shared memory; 16-bit lanes go two at a time. */
static void put_lanes(const Tile *tile, const Way *way, uint32_t i, Val offset, uint32_t step,
                      Val value) {
    const Codegen *k = tile->lower->k;
    uint32_t bytes = tile->places[i].elem_bytes, at_once = 1;
    if (bytes == 2 && way->lanes % 2 == 0) {
        at_once = tile->places[i].word_elems;
        value = k_bitcast(k, value, k_vector_of(k->i32, way->lanes / at_once));
    }
    for (uint32_t j = 0; j < way->lanes; j += at_once) {
        Val to = element_at(tile, i, offset, step * way->step, j);
        Val part = lane_of(k, value, j / at_once);
        k_store_aligned(k, part, to, bytes * at_once);
    }
}

static Val take_lanes(const Tile *tile, const Way *way, uint32_t i, Val offset, uint32_t step) {
    const Codegen *k = tile->lower->k;
    Dtype dtype = dtype_of(tile, i);
    LLVMTypeRef type = k_memory_type(k, dtype, 1);
    Val all = LLVMGetPoison(k_memory_type(k, dtype, way->lanes));
    for (uint32_t j = 0; j < way->lanes; j++) {
        Val from = element_at(tile, i, offset, j, step * way->step);
        Val one = k_load_aligned(k, type, from, dtype_bytes(dtype));
        if (way->lanes == 1)
            all = one;
        else
            all = k_insert(k, all, one, j);
    }
    if (!dtype_is_bool(dtype)) return all;
    return k_ne(k, all, LLVMConstNull(LLVMTypeOf(all)));
}

/* The two passes: loads, then stores. */

/* Starts the staged loads: values[step * n_staged + i]. */
static Val *begin_staged(const Tile *tile, const Way *way) {
    Point first = point_begin(tile, way);
    Val *values = arena_array(tile->lower->k->arena, Val, (size_t)way->n_steps * tile->n_staged);
    for (uint32_t step = 0; step < way->n_steps; step++) {
        Point point = point_step(tile, way, &first, step);
        for (uint32_t i = 0; i < tile->n_staged; i++)
            values[step * tile->n_staged + i] = point_loaded(&point, tile->staged[i]);
    }
    return values;
}

static void put_staged(const Tile *tile, const Way *way, Val *values) {
    for (uint32_t i = 0; i < tile->n_staged; i++) {
        Val offset = offset_of(tile, &tile->places[i], way->row, way->lane);
        for (uint32_t step = 0; step < way->n_steps; step++)
            put_lanes(tile, way, i, offset, step, values[step * tile->n_staged + i]);
    }
}

/* Lists the loads that are not staged and whose addresses need no staged load. With along_in only
 * loads whose addresses move along the tile's `in` axis, otherwise only the other loads. */
static uint32_t list_ahead(const Tile *tile, bool along_in, ScalarId *loads) {
    const Kernel *kernel = tile->lower->kernel;
    uint32_t n = 0, in = tile->lower->variant->sched.map_tile.axis_in;
    const bool *needed =
        kernel_needed_scalars(tile->lower->k->arena, kernel, tile->values, tile->n_stores);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        bool is_wanted = needed[id] && s->kind == SCALAR_LOAD &&
                         !vec_among(tile->staged, tile->n_staged, id) &&
                         (s->axes >> in & 1) == along_in;
        if (!is_wanted) continue;
        const bool *under =
            kernel_needed_scalars(tile->lower->k->arena, kernel, &(ScalarId){id}, 1);
        for (uint32_t i = 0; i < tile->n_staged; i++)
            is_wanted = is_wanted && !under[tile->staged[i]];
        if (is_wanted) loads[n++] = id;
    }
    return n;
}

/* Computes the values that all steps share, once their loads have arrived. */
static void share_values(const Tile *tile, const Way *way, Point *first, Point *points) {
    uint32_t n = scalar_count(tile->lower->kernel->scalars);
    point_prepare(first, tile->values, tile->n_stores,
                  1u << tile->lower->variant->sched.map_tile.axis_in);
    for (uint32_t step = 0; step < way->n_steps; step++)
        for (ScalarId id = 1; id <= n; id++)
            if (!points[step].values[id]) points[step].values[id] = first->values[id];
}

/* Loads other tensors for all steps into points[step]. */
static void load_ahead(const Tile *tile, const Way *way, Point *first, Point *points) {
    Lower *lower = tile->lower;
    ScalarId *loads =
        arena_array(lower->k->arena, ScalarId, scalar_count(lower->kernel->scalars) + 1);
    uint32_t n = list_ahead(tile, false, loads);
    for (uint32_t i = 0; i < n; i++) point_value(first, loads[i]);
    n = map_tile_loads_ahead(lower->k->arena, lower->kernel, &lower->variant->sched)
            ? list_ahead(tile, true, loads)
            : 0;
    for (uint32_t step = 0; step < way->n_steps; step++) {
        points[step] = point_step(tile, way, first, step);
        for (uint32_t i = 0; i < n; i++) point_value(&points[step], loads[i]);
    }
}

/* One step's stores, in the threads whose element exists. */
static void store_step(const Tile *tile, const Way *way, Val *offsets, uint32_t step,
                       const Point *at) {
    const Codegen *k = tile->lower->k;
    Point point = point_inside(at);
    If exists = if_begin(k, point.active);
    point.active = NULL;
    for (uint32_t i = 0; i < tile->n_staged; i++)
        point.values[tile->staged[i]] = take_lanes(tile, way, i, offsets[i], step);
    point_prepare_stores(&point, tile->stores, tile->n_stores);
    point_store_all(&point, tile->stores, tile->n_stores);
    if_end(k, &exists);
}

static void work(const Tile *tile, const Way *way, const Point *points) {
    Val offsets[MAP_TILE_MAX_STAGED];
    for (uint32_t i = 0; i < tile->n_staged; i++)
        offsets[i] = offset_of(tile, &tile->places[i], way->lane, way->row);
    for (uint32_t step = 0; step < way->n_steps; step++)
        store_step(tile, way, offsets, step, &points[step]);
}

static Tile tile_new(Lower *lower) {
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    const Stage *stage = &lower->kernel->stages.data[0];
    Tile tile = {.lower = lower,
                 .point = point_new(lower, 1),
                 .stores = stage->stores.data,
                 .n_stores = stage->stores.n};
    tile.values = arena_array(k->arena, ScalarId, stage->stores.n);
    for (uint32_t i = 0; i < stage->stores.n; i++) tile.values[i] = stage->stores.data[i].value;
    tile.n_staged = map_tile_staged(k->arena, lower->kernel, sched->map_tile.axis_in,
                                    lower->lane_axis, tile.staged, MAP_TILE_MAX_STAGED);
    if (tile.n_staged > MAP_TILE_MAX_STAGED) ice(k->arena, "a tile of %u loads", tile.n_staged);
    for (uint32_t i = 0; i < tile.n_staged; i++) {
        uint32_t bytes = dtype_bytes(dtype_of(&tile, i));
        tile.places[i] = map_tile_place(sched, bytes);
        tile.arrays[i] =
            gpu_shared(k, k->i8, sched->map_tile.tile_m * sched->map_tile.tile_n * bytes,
                       str_format(k->arena, "tile%u", i));
    }
    return tile;
}

void emit_gpu_map_tile(Lower *lower) {
    gpu_stream(lower);
    Tile tile = tile_new(lower);
    find_tile(&tile);
    Way in = way_new(&tile, true), out = way_new(&tile, false);
    Val *staged = begin_staged(&tile, &in);
    Point first = point_begin(&tile, &out);
    Point *points = arena_array(lower->k->arena, Point, out.n_steps);
    load_ahead(&tile, &out, &first, points);
    put_staged(&tile, &in, staged);
    share_values(&tile, &out, &first, points);
    gpu_barrier(lower->k);
    work(&tile, &out, points);
}
