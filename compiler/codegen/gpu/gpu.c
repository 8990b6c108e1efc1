/* See gpu.h. */
#include "codegen/gpu/gpu.h"

#include "template/wgmma.h"

#include <llvm-c/Target.h>

static const GpuIsa isas[] = {
#define GPU_ISA(device, ...) [DEVICE_##device] = {__VA_ARGS__},
#include "codegen/gpu/isas.def"
};
enum {
#define GPU_ISA(device, ...) ISA_OF_##device,
#include "codegen/gpu/isas.def"
    N_ISAS
};
_Static_assert(N_ISAS == (int)DEVICE_COUNT, "each device class has a row of isas.def");

const GpuIsa *gpu_isa(const Codegen *k) {
    return &isas[k->target->device];
}

bool gpu_isa_has(const Target *target, TemplateId id) {
    const TemplateInfo *info = template_info(id);
    bool is_plain_map = !form_info(info->form)->reduces && !info->tiles_outputs;
    return !isas[target->device].has_maps_alone || is_plain_map;
}

Val gpu_special(const Codegen *k, const char *name) {
    const char *intrinsic = str_format(k->arena, "llvm.nvvm.read.ptx.sreg.%s", name);
    return k_intrinsic_0(k, intrinsic);
}

Val gpu_thread(const Codegen *k) {
    return k_intrinsic_0(k, gpu_isa(k)->thread);
}

Val gpu_index(const Lower *lower, Val i32) {
    if (lower->index_type == lower->k->i32) return i32;
    return k_zext(lower->k, i32, lower->index_type);
}

Val gpu_block_number(const Lower *lower) {
    return lower->block ? lower->block : k_intrinsic_0(lower->k, gpu_isa(lower->k)->block);
}

Val gpu_block(const Lower *lower) {
    return gpu_index(lower, gpu_block_number(lower));
}

Val gpu_step(const Lower *lower, uint32_t per_thread) {
    const Codegen *k = lower->k;
    Val thread = gpu_index(lower, gpu_thread(k)), block = gpu_block(lower);
    return k_madi(k, block, (int64_t)lower->variant->sched.threads * per_thread, thread);
}

void gpu_ask_for_blocks(const Lower *lower, uint32_t n) {
    k_add_attribute(lower->k, lower->function, "nvvm.minctasm",
                    str_format(lower->k->arena, "%u", n));
}

void gpu_barrier(const Codegen *k) {
    k_intrinsic_1(k, "llvm.nvvm.barrier.cta.sync.aligned.all", k_i32(k, 0));
}

void gpu_warp_barrier(const Codegen *k) {
    k_intrinsic_1(k, "llvm.nvvm.bar.warp.sync", k_i32(k, -1));
}

void gpu_copies_commit(const Codegen *k) {
    k_intrinsic_0(k, "llvm.nvvm.cp.async.commit.group");
}

void gpu_copies_wait(const Codegen *k, uint32_t n_pending) {
    k_intrinsic_1(k, "llvm.nvvm.cp.async.wait.group", k_i32(k, n_pending));
}

static Val shuffle_i32(const Codegen *k, Val value, uint32_t offset) {
    Val args[4] = {k_i32(k, -1), value, k_i32(k, offset), k_i32(k, WARP_THREADS - 1)};
    return k_intrinsic(k, "llvm.nvvm.shfl.sync.bfly.i32", args, 4);
}

Val gpu_any_of_warp(const Codegen *k, Val predicate) {
    return k_intrinsic_2(k, "llvm.nvvm.vote.any.sync", k_i32(k, -1), predicate);
}

Val gpu_threads_of_warp(const Codegen *k, Val predicate) {
    return k_intrinsic_2(k, "llvm.nvvm.vote.ballot.sync", k_i32(k, -1), predicate);
}

Val gpu_shuffle_xor(const Codegen *k, Val value, uint32_t offset) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMIsConstant(value)) return value;
    if (type == k->i32) return shuffle_i32(k, value, offset);
    if (type == k->f32) {
        Val bits = k_bitcast(k, value, k->i32);
        return k_bitcast(k, shuffle_i32(k, bits, offset), type);
    }
    LLVMTypeRef pair = LLVMVectorType(k->i32, 2);
    Val halves = k_bitcast(k, value, pair);
    Val moved = LLVMGetPoison(pair);
    for (int i = 0; i < 2; i++) {
        Val at = k_i32(k, i);
        Val half = k_extract_at(k, halves, at);
        half = shuffle_i32(k, half, offset);
        moved = k_insert_at(k, moved, half, at);
    }
    return k_bitcast(k, moved, type);
}

static Val shared_array(const Codegen *k, LLVMTypeRef type, const char *name) {
    const char *own = str_format(k->arena, "%s$%s", k->symbol, name);
    Val array = LLVMAddGlobalInAddressSpace(k->module, type, own, 3);
    LLVMSetLinkage(array, LLVMInternalLinkage);
    LLVMSetInitializer(array, LLVMGetUndef(type));
    LLVMSetAlignment(array, GPU_SHARED_ALIGN);
    return array;
}

void gpu_pool_begin(Codegen *k, SharedPool *pool) {
    pool->array = shared_array(k, LLVMArrayType2(k->i8, 0), "unsized");
    k->pool = pool;
}

void gpu_pool_end(Codegen *k) {
    Val array = k->pool->array;
    LLVMTypeRef type = LLVMArrayType2(k->i8, k->pool->n_bytes);
    if (LLVMGetFirstUse(array)) LLVMReplaceAllUsesWith(array, shared_array(k, type, "pool"));
    LLVMDeleteGlobal(array);
    k->pool = NULL;
}

static Val take_from_pool(const Codegen *k, LLVMTypeRef element, uint32_t n) {
    SharedPool *pool = k->pool;
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(k->module);
    uint32_t begin = pool->n_used, bytes = (uint32_t)LLVMABISizeOfType(layout, element) * n;
    pool->n_used += (bytes + GPU_SHARED_ALIGN - 1) / GPU_SHARED_ALIGN * GPU_SHARED_ALIGN;
    if (pool->n_used > pool->n_bytes) pool->n_bytes = pool->n_used;
    return k_byte(k, pool->array, k_i32(k, begin));
}

Val gpu_shared(const Codegen *k, LLVMTypeRef element, uint32_t n, const char *name) {
    if (k->pool) return take_from_pool(k, element, n);
    return shared_array(k, LLVMArrayType2(element, n), name);
}

/* All functions of the module declare this symbol, so its alignment is the largest that any of them
 * needs. */
Val gpu_shared_dynamic(const Codegen *k) {
    static const char name[] = "dynamic_shared";
    Val array = LLVMGetNamedGlobal(k->module, name);
    if (array) return array;
    array = LLVMAddGlobalInAddressSpace(k->module, LLVMArrayType2(k->i8, 0), name, 3);
    LLVMSetAlignment(array, WGMMA_TILE_ALIGN);
    return array;
}

Val gpu_tiles(Lower *lower, uint32_t n_bytes, uint32_t align_bytes) {
    SharedTiles *tiles = lower->tiles;
    if (lower->k->pool) return take_from_pool(lower->k, lower->k->i8, n_bytes);
    if (tiles->dynamic_bytes >= n_bytes) return gpu_shared_dynamic(lower->k);
    if (lower->variant->shared_bytes)
        ice(lower->k->arena, "%u bytes of tiles in %u bytes of shared memory", n_bytes,
            tiles->dynamic_bytes);
    if (tiles->array && tiles->n_bytes >= n_bytes) return tiles->array;
    Val array = gpu_shared(lower->k, lower->k->i8, n_bytes, "tiles");
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

void gpu_pdl_say(const Codegen *k, const char *text) {
    k_asm(k, k->void_type, text, "~{memory}", NULL, 0, true);
}

void gpu_pdl_trigger(Lower *lower) {
    if (lower->triggers_next) gpu_pdl_say(lower->k, "griddepcontrol.launch_dependents;");
    lower->triggers_next = false;
}

GpuBand gpu_band(const Point *row) {
    Lower *lower = row->lower;
    const Band *band = &lower->kernel->band;
    Point point = point_inside(row);
    point.lanes = 1;
    Val first = point_value(&point, band->first), end = point_value(&point, band->end);
    return (GpuBand){gpu_index(lower, first), gpu_index(lower, end)};
}
