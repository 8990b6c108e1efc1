/* Tiles of parallel kernels. See wgmma.h. */
#include "codegen/gpu_gemm/wgmma.h"

#include <string.h>

enum { MAX_KEPT = 2 };

uint32_t wgmma_cluster(const Wgmma *w) {
    return w->rank ? w->sched->cluster : 1;
}

/* The wide tiles and the narrow last one together cover a known extent. */
GemmTiles wgmma_tiles(const Wgmma *w) {
    const Lower *lower = w->lower;
    DimTab *dims = lower_dims(lower);
    GemmTiles tiles = gpu_gemm_tiles(lower, w->sched->gemm.tile_m * wgmma_cluster(w));
    int64_t n = 0, n_wide;
    if (!lower->variant->sched.gemm.tail_n) return tiles;
    if (!dim_is_const(dims, kernel_axis_extent(lower->kernel, gemm_axis_n(lower->kernel)), &n))
        ice(lower->k->arena, "narrow tiles of an extent that is not known");
    n_wide = n / tiles.n;
    tiles.across = dim_const(dims, w->wide ? 1 : n_wide);
    tiles.is_whole = !w->wide || n % tiles.n == w->sched->gemm.tile_n;
    if (w->wide) tiles.begin = dim_const(dims, n_wide * tiles.n);
    tiles.n = w->sched->gemm.tile_n;
    return tiles;
}

GemmBlock wgmma_tile_at(const Wgmma *w, Val number) {
    GemmBlock block = gpu_gemm_block_at(w->lower, number, &w->tiles);
    if (!w->rank) return block;
    const Codegen *k = w->k;
    Val below = k_muli(k, w->rank, w->sched->gemm.tile_m);
    block.m0 = k_add(k, block.m0, gpu_index(w->lower, below));
    return block;
}

/* The number of rows of tiles of one kernel, and of tiles. */
static DimId n_tile_rows(const Wgmma *w) {
    const Kernel *kernel = w->lower->kernel;
    DimTab *dims = lower_dims(w->lower);
    DimId all = dim_ceil_div(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)), w->tiles.m);
    for (uint32_t axis = 0; axis + 2 < kernel->n_parallel; axis++)
        all = dim_mul(dims, all, kernel_axis_extent(kernel, axis));
    return all;
}

static DimId n_tiles(const Wgmma *w) {
    return dim_mul(lower_dims(w->lower), n_tile_rows(w), w->tiles.across);
}

static Val by_cluster(const Wgmma *w, Val blocks) {
    Val size = LLVMConstInt(LLVMTypeOf(blocks), wgmma_cluster(w), 0);
    return w->rank ? k_udiv(w->k, blocks, size) : blocks;
}

/* The number of tiles of all kernels with this code. */
static DimId n_own_tiles(const Wgmma *w) {
    return dim_mul_const(lower_dims(w->lower), n_tiles(w), w->lower->n_kernels);
}

/* The narrow tiles go to clusters that have no wide tile in the last wave; to all clusters, if
 * every one has. */
static Loop each_narrow_tile(const Wgmma *w) {
    const Codegen *k = w->k;
    Lower *lower = w->lower;
    Val n_clusters = by_cluster(w, gpu_index(lower, gpu_special(k, "nctaid.x")));
    Val cluster = by_cluster(w, gpu_block(lower));
    Val n_wide = lower_dim(lower, n_own_tiles(w->wide));
    Val n_narrow = lower_dim(lower, n_own_tiles(w));
    Val n_busy = k_urem(k, n_wide, n_clusters);
    Val is_busy = k_ult(k, cluster, n_busy);
    Val first = k_select(k, is_busy, n_narrow, k_sub(k, cluster, n_busy));
    Val step = k_sub(k, n_clusters, n_busy);
    return loop_begin_by(k, first, n_narrow, step);
}

/* The block's share of the `all` tiles, or rows of tiles. */
static Loop each_own(const Wgmma *w, DimId all) {
    Lower *lower = w->lower;
    Val n_blocks = gpu_index(lower, gpu_special(w->k, "nctaid.x"));
    Val first = by_cluster(w, gpu_block(lower));
    Val end = lower_dim(lower, all);
    Val step = by_cluster(w, n_blocks);
    return loop_begin_by(w->k, first, end, step);
}

static Loop each_tile(const Wgmma *w) {
    Lower *lower = w->lower;
    if (w->wide) return each_narrow_tile(w);
    DimId all = n_own_tiles(w);
    for (uint32_t c = 1; c < lower->n_codes; c++)
        all = dim_add(lower_dims(lower), all, n_own_tiles(&w[c]));
    return each_own(w, all);
}

/* The number that comes at the loop's index, if every other round goes backwards. */
static Val forth_and_back(const Wgmma *w, const Loop *tiles) {
    const Codegen *k = w->k;
    Val round = k_udiv(k, tiles->index, tiles->step), first = k_mul(k, round, tiles->step);
    Val end = k_umin(k, k_add(k, first, tiles->step), tiles->to);
    Val backwards = k_sub(k, k_add(k, first, k_subi(k, end, 1)), tiles->index);
    Val is_odd = k_nei(k, k_andi(k, round, 1), 0);
    return k_select(k, is_odd, backwards, tiles->index);
}

/* The tiles of a row of tiles that are in the kernel's band. */
static void begin_columns(const Wgmma *w, WgmmaWalk *walk, Val row, Val *values, uint32_t n) {
    const Codegen *k = w->k;
    Lower *lower = w->lower;
    GemmBlock block = gpu_gemm_row_at(lower, row, &w->tiles);
    GpuBand band = gpu_gemm_band_of_n(&block);
    Val step = lower_index_const(lower, w->tiles.n);
    Val end = k_udiv(k, k_add(k, band.end, k_subi(k, step, 1)), step);
    walk->columns = loop_begin(k, k_udiv(k, band.first, step), end, 1);
    loop_carry(k, &walk->columns, values, n);
    walk->number = gpu_gemm_tile_number(lower, row, walk->columns.index, &w->tiles);
}

WgmmaWalk wgmma_walk(const Wgmma *w, Val *values, uint32_t n) {
    const Kernel *kernel = w->lower->kernel;
    const Band *band = &kernel->band;
    WgmmaWalk walk = {.has_columns = band->first && band->axis == gemm_axis_n(kernel)};
    walk.tiles = walk.has_columns ? each_own(w, n_tile_rows(w)) : each_tile(w);
    loop_carry(w->k, &walk.tiles, values, n);
    walk.number = band->first ? forth_and_back(w, &walk.tiles) : walk.tiles.index;
    if (walk.has_columns) begin_columns(w, &walk, walk.number, values, n);
    return walk;
}

static Val comes_again(const Codegen *k, const Loop *loop) {
    Val next = k_add(k, loop->index, loop->step);
    return k_slt(k, next, loop->to);
}

Val wgmma_is_more(const Wgmma *w, const WgmmaWalk *walk) {
    Val more = comes_again(w->k, &walk->tiles);
    return walk->has_columns ? k_or(w->k, more, comes_again(w->k, &walk->columns)) : more;
}

void wgmma_walked(const Wgmma *w, WgmmaWalk *walk) {
    if (walk->has_columns) loop_end(w->k, &walk->columns);
    loop_end(w->k, &walk->tiles);
}

Val wgmma_kernel_of_tile(const Wgmma *w, Val *number) {
    const Codegen *k = w->k;
    if (w->lower->n_kernels == 1) return NULL;
    Val n = lower_dim(w->lower, n_tiles(w)), tile = *number;
    *number = k_urem(k, tile, n);
    return k_udiv(k, tile, n);
}

/* The parameter of kernel `part`; parameters begin at `first`, `step` apart. */
static Val parameter_of(const Wgmma *w, Val part, uint32_t first, uint32_t step) {
    const Codegen *k = w->k;
    Val own = LLVMGetParam(w->lower->function, first);
    for (uint32_t p = 1; p < w->lower->n_kernels; p++) {
        Val is_past = k_ugei(k, part, p);
        Val other = LLVMGetParam(w->lower->function, first + p * step);
        own = k_select(k, is_past, other, own);
    }
    return own;
}

void wgmma_take_maps(Wgmma *w, Val part) {
    uint32_t n_maps = w->lower->variant->n_maps, first = w->lower->first_map;
    for (uint32_t i = 0; i < n_maps && part; i++)
        w->sides[i].parameter = parameter_of(w, part, first + i, n_maps);
}

void wgmma_take_pointers(Wgmma *w, Val part) {
    uint32_t n_args = w->lower->kernel->args.n, first = w->lower->first_param;
    for (uint32_t i = 0; i < n_args && part; i++)
        w->lower->pointers[i] = parameter_of(w, part, first + i, n_args);
}

/* Tiles are numbered one code after the other. */
void wgmma_work_by_code(Wgmma *codes, Val tile, WgmmaWork *work, Val *values, uint32_t n_values,
                        uint32_t n_kept) {
    const Codegen *k = codes->k;
    Val own[WGMMA_MAX_VALUES], kept[MAX_KEPT];
    uint32_t n_codes = codes->lower->n_codes;
    if (n_codes == 1) {
        work(codes, tile, values);
        return;
    }
    LLVMBasicBlockRef after = k_block(k, "worked");
    for (uint32_t c = 0; c < n_codes; c++) {
        LLVMBasicBlockRef next = after;
        Val end = lower_dim(codes->lower, n_own_tiles(&codes[c]));
        if (c + 1 < n_codes) {
            LLVMBasicBlockRef here = k_block(k, "code");
            next = k_block(k, "next");
            Val is_here = k_ult(k, tile, end);
            k_cond_br(k, is_here, here, next);
            k_goto(k, here);
        }
        memcpy(own, values, n_values * sizeof *own);
        work(&codes[c], tile, own);
        LLVMBasicBlockRef from = k_here(k);
        k_br(k, after);
        k_goto(k, after);
        for (uint32_t i = 0; i < n_kept; i++) {
            if (c == 0) kept[i] = k_phi(k, LLVMTypeOf(own[i]));
            k_incoming(kept[i], own[i], from);
        }
        k_goto(k, next);
        if (c + 1 < n_codes) tile = k_sub(k, tile, end);
    }
    memcpy(values, kept, n_kept * sizeof *kept);
}

static DimId extent_of_k(const Wgmma *w) {
    const Kernel *kernel = w->lower->kernel;
    return kernel_axis_extent(kernel, gemm_axis_k(kernel));
}

/* The first tile row of a cluster is that of its band. */
static GemmBlock cluster_tile_at(const Wgmma *w, Val number) {
    return gpu_gemm_block_at(w->lower, number, &w->tiles);
}

GpuBand wgmma_k_of_number(const Wgmma *w, Val number) {
    if (w->lower->kernel->band.first) {
        GemmBlock block = cluster_tile_at(w, number);
        return gpu_gemm_band_of_k(&block);
    }
    return (GpuBand){lower_index_const(w->lower, 0), lower_dim(w->lower, extent_of_k(w))};
}

GpuBand wgmma_k_of_tile(const Wgmma *codes, Val tile) {
    Lower *lower = codes->lower;
    const Codegen *k = codes->k;
    GpuBand of_k = wgmma_k_of_number(codes, tile);
    DimId before = dim_const(lower_dims(lower), 0);
    for (uint32_t c = 1; c < lower->n_codes; c++) {
        before = dim_add(lower_dims(lower), before, n_own_tiles(&codes[c - 1]));
        if (extent_of_k(&codes[c]) == extent_of_k(&codes[c - 1])) continue;
        Val begin = lower_dim(lower, before);
        Val is_past = k_uge(k, tile, begin);
        Val own = lower_dim(lower, extent_of_k(&codes[c]));
        of_k.end = k_select(k, is_past, own, of_k.end);
    }
    return of_k;
}
