/* Stores of several points whose lanes lie between each other. See point.h. */
#include "codegen/scalar/masked.h"
#include "codegen/scalar/point_near.h"
#include "codegen/scalar/point_index.h"
#include "plan/access.h"

/* Lanes [part * lanes, + lanes) of the woven vectors. */
static Val weave(const Codegen *k, const Val *vectors, uint32_t n, uint32_t lanes, uint32_t part) {
    Val both[2 * STORE_WEAVE_MOST], *from = arena_array(k->arena, Val, 2 * (size_t)lanes);
    Val poison = LLVMGetPoison(LLVMTypeOf(vectors[0]));
    for (uint32_t i = 0; i < 2 * lanes; i++) from[i] = k_i32(k, i);
    Val side_by_side = LLVMConstVector(from, 2 * lanes);
    both[0] = k_shuffle(k, vectors[0], vectors[1], side_by_side);
    both[1] = both[0];
    if (n > 2) both[1] = k_shuffle(k, vectors[2], n > 3 ? vectors[3] : poison, side_by_side);
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t at = part * lanes + i;
        from[i] = k_i32(k, at % n * lanes + at / n);
    }
    return k_shuffle(k, both[0], both[1], LLVMConstVector(from, lanes));
}

/* Where the point's lanes exist and are inside of the store; NULL: everywhere. */
static Val lanes_inside(Point *point, const Store *store) {
    const Codegen *k = point->lower->k;
    if (!store->guard) return point->mask;
    Val inside = point_guard(point, store->guard);
    if (!k_is_vector(inside)) inside = k_splat(k, inside, point->lanes);
    return point->mask ? k_and(k, point->mask, inside) : inside;
}

/* A whole vector is stored without a mask. */
static void store_part(const Codegen *k, Val pointer, Val value, Val mask, uint32_t bytes) {
    if (!mask) {
        k_store_aligned(k, value, pointer, bytes);
        return;
    }
    LLVMTypeRef type = LLVMTypeOf(mask);
    Val all = k_intrinsic_of(k, "llvm.vector.reduce.and", &type, 1, &mask, 1);
    If whole = if_begin(k, all);
    k_store_aligned(k, value, pointer, bytes);
    if_end(k, &whole);
    If part = if_begin(k, k_not(k, all));
    masked_store(k, pointer, bytes, mask, value);
    if_end(k, &part);
}

void point_store_woven(Point *points, uint32_t n, const Store *store) {
    Lower *lower = points[0].lower;
    const Codegen *k = lower->k;
    uint32_t arg = lower_arg(lower, store->buffer), lanes = points[0].lanes;
    Dtype dtype = lower->plan->buffers.data[store->buffer].dtype;
    Val values[STORE_WEAVE_MOST], masks[STORE_WEAVE_MOST];
    for (uint32_t i = 0; i < n; i++) {
        values[i] = point_lanes(&points[i], store->value);
        masks[i] = lanes_inside(&points[i], store);
    }
    Val first = point_index_at(&points[0], store->address, false);
    Val pointer = point_element_pointer(lower, arg, first);
    LLVMTypeRef type = k_memory_type(k, dtype, 1);
    for (uint32_t part = 0; part < n; part++) {
        Val value = weave(k, values, n, lanes, part);
        Val mask = masks[0] ? weave(k, masks, n, lanes, part) : NULL;
        Val to = k_gep(k, type, pointer, k_int(k->i64, (int64_t)part * lanes));
        store_part(k, to, value, mask, dtype_bytes(dtype));
    }
}
