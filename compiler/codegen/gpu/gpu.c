/* GPU vocabulary, and the map template. See gpu.h and template.h. */
#include "codegen/gpu/gpu.h"

#include "plan/wgmma.h"

#include <llvm-c/Target.h>

LLVMValueRef gpu_special(const Unit *unit, const char *name) {
    const char *intrinsic = str_format(unit->arena, "llvm.nvvm.read.ptx.sreg.%s", name);
    return unit_intrinsic(unit, intrinsic, NULL, 0, NULL, 0);
}

LLVMValueRef gpu_thread(const Unit *unit) {
    return gpu_special(unit, "tid.x");
}

LLVMValueRef gpu_index(const Lower *lower, LLVMValueRef i32) {
    if (lower->index_type == lower->unit->i32) return i32;
    return LLVMBuildZExt(lower->unit->builder, i32, lower->index_type, "");
}

LLVMValueRef gpu_block(const Lower *lower) {
    return gpu_index(lower, lower->block ? lower->block : gpu_special(lower->unit, "ctaid.x"));
}

void gpu_barrier(const Unit *unit) {
    LLVMValueRef zero = unit_i32(unit, 0);
    unit_intrinsic(unit, "llvm.nvvm.barrier.cta.sync.aligned.all", NULL, 0, &zero, 1);
}

static LLVMValueRef shuffle_i32(const Unit *unit, LLVMValueRef value, uint32_t offset) {
    LLVMValueRef args[4] = {unit_i32(unit, -1), value, unit_i32(unit, offset),
                            unit_i32(unit, WARP - 1)};
    return unit_intrinsic(unit, "llvm.nvvm.shfl.sync.bfly.i32", NULL, 0, args, 4);
}

LLVMValueRef gpu_shuffle_xor(const Unit *unit, LLVMValueRef value, uint32_t offset) {
    LLVMBuilderRef builder = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMIsConstant(value)) return value;
    if (type == unit->i32) return shuffle_i32(unit, value, offset);
    if (type == unit->f32) {
        LLVMValueRef bits = LLVMBuildBitCast(builder, value, unit->i32, "");
        return LLVMBuildBitCast(builder, shuffle_i32(unit, bits, offset), type, "");
    }
    LLVMTypeRef pair = LLVMVectorType(unit->i32, 2);
    LLVMValueRef halves = LLVMBuildBitCast(builder, value, pair, "");
    LLVMValueRef moved = LLVMGetPoison(pair);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef at = unit_i32(unit, i);
        LLVMValueRef half = LLVMBuildExtractElement(builder, halves, at, "");
        half = shuffle_i32(unit, half, offset);
        moved = LLVMBuildInsertElement(builder, moved, half, at, "");
    }
    return LLVMBuildBitCast(builder, moved, type, "");
}

static LLVMValueRef shared_array(const Unit *unit, LLVMTypeRef type, const char *name) {
    const char *own = str_format(unit->arena, "%s$%s", unit->symbol, name);
    LLVMValueRef array = LLVMAddGlobalInAddressSpace(unit->module, type, own, 3);
    LLVMSetLinkage(array, LLVMInternalLinkage);
    LLVMSetInitializer(array, LLVMGetUndef(type));
    LLVMSetAlignment(array, GPU_SHARED_ALIGN);
    return array;
}

void gpu_pool_begin(Unit *unit, SharedPool *pool) {
    pool->array = shared_array(unit, LLVMArrayType2(unit->i8, 0), "unsized");
    unit->pool = pool;
}

void gpu_pool_end(Unit *unit) {
    LLVMValueRef array = unit->pool->array;
    LLVMTypeRef type = LLVMArrayType2(unit->i8, unit->pool->n_bytes);
    if (LLVMGetFirstUse(array)) LLVMReplaceAllUsesWith(array, shared_array(unit, type, "pool"));
    LLVMDeleteGlobal(array);
    unit->pool = NULL;
}

static LLVMValueRef take_from_pool(const Unit *unit, LLVMTypeRef element, uint32_t n) {
    SharedPool *pool = unit->pool;
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(unit->module);
    uint32_t begin = pool->n_used, bytes = (uint32_t)LLVMABISizeOfType(layout, element) * n;
    pool->n_used += (bytes + GPU_SHARED_ALIGN - 1) / GPU_SHARED_ALIGN * GPU_SHARED_ALIGN;
    if (pool->n_used > pool->n_bytes) pool->n_bytes = pool->n_used;
    return gpu_shared_at(unit, pool->array, unit->i8, unit_i32(unit, begin));
}

LLVMValueRef gpu_shared(const Unit *unit, LLVMTypeRef element, uint32_t n, const char *name) {
    if (unit->pool) return take_from_pool(unit, element, n);
    return shared_array(unit, LLVMArrayType2(element, n), name);
}

/* All functions declare the same symbol: it is aligned as any of them wants it. */
LLVMValueRef gpu_shared_dynamic(const Unit *unit) {
    static const char name[] = "dynamic_shared";
    LLVMValueRef array = LLVMGetNamedGlobal(unit->module, name);
    if (array) return array;
    array = LLVMAddGlobalInAddressSpace(unit->module, LLVMArrayType2(unit->i8, 0), name, 3);
    LLVMSetAlignment(array, WGMMA_TILE_ALIGN);
    return array;
}

LLVMValueRef gpu_tiles(Lower *lower, uint32_t n_bytes, uint32_t align_bytes) {
    SharedTiles *tiles = lower->tiles;
    if (lower->unit->pool) return take_from_pool(lower->unit, lower->unit->i8, n_bytes);
    if (tiles->dynamic_bytes >= n_bytes) return gpu_shared_dynamic(lower->unit);
    if (lower->variant->shared_bytes)
        ice(lower->unit->arena, "%u bytes of tiles in %u bytes of shared memory", n_bytes,
            tiles->dynamic_bytes);
    if (tiles->array && tiles->n_bytes >= n_bytes) return tiles->array;
    LLVMValueRef array = gpu_shared(lower->unit, lower->unit->i8, n_bytes, "tiles");
    LLVMSetAlignment(array, align_bytes);
    if (tiles->array) {
        if (LLVMGetAlignment(tiles->array) > align_bytes)
            LLVMSetAlignment(array, LLVMGetAlignment(tiles->array));
        LLVMReplaceAllUsesWith(tiles->array, array);
        LLVMDeleteGlobal(tiles->array);
    }
    tiles->array = array;
    tiles->n_bytes = n_bytes;
    return array;
}

LLVMValueRef gpu_shared_at(const Unit *unit, LLVMValueRef array, LLVMTypeRef element,
                           LLVMValueRef index) {
    return LLVMBuildGEP2(unit->builder, element, array, &index, 1, "");
}

/* The thread's step `u` of those that its block has: it is active where there is such a step. */
static Point map_step(Lower *lower, LLVMValueRef first, LLVMValueRef n_steps, uint32_t u) {
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Sched *sched = &lower->variant->sched;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    uint32_t n = lower->kernel->n_parallel;
    Point point = point_new(lower, sched->lanes);
    LLVMValueRef lanes = lower_index_const(lower, sched->lanes);
    LLVMValueRef more = lower_index_const(lower, (int64_t)u * sched->threads);
    LLVMValueRef step = u ? LLVMBuildAdd(builder, first, more, "") : first;
    point.active = LLVMBuildICmp(builder, LLVMIntULT, step, n_steps, "");
    if (n == 1) {
        point.axis[0] = LLVMBuildMul(builder, step, lanes, "");
    } else if (n > 1) {
        LLVMValueRef extent = lower_dim(lower, index_axis_extent(tab, n - 1));
        LLVMValueRef per_row = LLVMBuildUDiv(builder, extent, lanes, "");
        LLVMValueRef column = LLVMBuildURem(builder, step, per_row, "");
        LLVMValueRef row = LLVMBuildUDiv(builder, step, per_row, "");
        point.axis[n - 1] = LLVMBuildMul(builder, column, lanes, "");
        lower_split(lower, row, 0, n - 1, &point);
    }
    return point;
}

/* An exact grid: many small blocks balance better over the machine than a loop in each. A thread
 * has one step, or a few of single elements, since a processor begins no more than some eleven
 * blocks in a microsecond; then all of its loads come before its first store. */
void template_gpu_map(Lower *lower) {
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    const Stage *stage = &kernel->stages.data[0];
    gpu_stream(lower);
    if (sched->lanes_in) {
        gpu_map_tile(lower);
        return;
    }
    if (sched->is_flat) {
        gpu_flat_map(lower);
        return;
    }
    LLVMValueRef thread = gpu_index(lower, gpu_thread(unit)), block = gpu_block(lower);
    LLVMValueRef of_block = lower_index_const(lower, (int64_t)sched->threads * sched->unroll);
    LLVMValueRef first = LLVMBuildMul(builder, block, of_block, "");
    first = LLVMBuildAdd(builder, first, thread, "");
    LLVMValueRef lanes = lower_index_const(lower, sched->lanes);
    LLVMValueRef n_steps =
        LLVMBuildUDiv(builder, lower_dim(lower, kernel_n_rows(kernel)), lanes, "");
    Point points[MAP_MAX_UNROLL];
    bool is_one = sched->unroll == 1;
    If exists;
    for (uint32_t u = 0; u < sched->unroll; u++) {
        points[u] = map_step(lower, first, n_steps, u);
        if (is_one) exists = if_begin(unit, lower->function, points[u].active);
        if (is_one) points[u].active = NULL;
        point_prepare_stores(&points[u], stage->stores.data, stage->stores.n);
    }
    for (uint32_t u = 0; u < sched->unroll; u++) {
        if (!is_one) exists = if_begin(unit, lower->function, points[u].active);
        point_store_all(&points[u], stage->stores.data, stage->stores.n);
        if_end(unit, &exists);
    }
}
