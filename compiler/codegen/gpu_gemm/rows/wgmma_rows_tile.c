/* Softmax between two products by wgmma: tiles that the copy engine cannot fetch, and values that
 * are not finite. See wgmma_rows.h. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

enum {
    CHECKING_THREADS = WGMMA_GROUP_THREADS - WARP_THREADS,
    ACCESS_WORDS = 4,
    ACCESSES = 4,         /* of a checking thread at a time */
    PRODUCER_BARRIER = 4, /* of the block: after the turns of three consumers */
    CONSUMERS_BARRIER
};

static void set_flag(const WgmmaRows *s, Val flag, Val is_set) {
    const Codegen *k = s->k;
    k_store(k, k_i32(k, 0), flag);
    gpu_warp_barrier(k);
    If sets = if_begin(k, is_set);
    k_store(k, k_i32(k, 1), flag);
    if_end(k, &sets);
    gpu_warp_barrier(k);
}

void wgmma_rows_check_values(const WgmmaRows *s, Val at, Val flag) {
    const Codegen *k = s->k;
    LLVMTypeRef words = k_vector_of(k->i32, ACCESS_WORDS);
    Val thread = k_subi(k, s->out.in_group, WARP_THREADS);
    Val any = k_i32(k, 0), last = k_i32(k, (int64_t)s->values.bytes - ACCESS_BYTES);
    Loop loop = loop_begin(k, k_muli(k, thread, ACCESS_BYTES), k_i32(k, s->values.bytes),
                           ACCESSES * CHECKING_THREADS * ACCESS_BYTES);
    loop_carry(k, &loop, &any, 1);
    for (uint32_t j = 0; j < ACCESSES; j++) {
        Val place = k_offset(k, loop.index, (int64_t)j * CHECKING_THREADS * ACCESS_BYTES);
        Val access = k_load_aligned(k, words, k_byte(k, at, k_umin(k, place, last)), ACCESS_BYTES);
        for (uint32_t i = 0; i < ACCESS_WORDS; i++)
            any = k_or(k, any, wgmma_rows_next_exponents(s, k_extract(k, access, i)));
    }
    loop_end(k, &loop);
    set_flag(s, flag, wgmma_rows_is_infinite(s, any));
}

typedef struct ValuesAt {
    const WgmmaRows *s;
    Val at;
} ValuesAt;

static Val value_place(const ValuesAt *values, Val key, Val column) {
    const OperandTile *tile = &values->s->values;
    const Codegen *k = values->s->k;
    uint32_t rows = tile->is_mn_major ? tile->depth : tile->own;
    Val row = tile->is_mn_major ? key : column, fast = tile->is_mn_major ? column : key;
    Val line = k_madi(k, k_udivi(k, fast, WGMMA_ROWS_BLOCK_ELEMS), rows, row);
    Val along = k_uremi(k, fast, WGMMA_ROWS_BLOCK_ELEMS);
    Val turn = k_muli(k, k_andi(k, row, 7), ACCESS_BYTES);
    Val byte = k_xor(k, k_muli(k, along, GEMM_ROWS_GEMM_ELEM_BYTES), turn);
    return k_byte(k, values->at, k_madi(k, line, WGMMA_SWIZZLE_BYTES, byte));
}

static Val pair_at(const void *user, Val key, Val column) {
    const ValuesAt *values = user;
    const Codegen *k = values->s->k;
    bool are_neighbours = values->s->values.is_mn_major;
    Val first = value_place(values, key, column);
    Val second = are_neighbours ? first : value_place(values, key, k_addi(k, column, 1));
    return wgmma_rows_pair(k, first, second, are_neighbours);
}

static void consumers_meet(const WgmmaRows *s) {
    const Codegen *k = s->k;
    Val args[2] = {k_i32(k, CONSUMERS_BARRIER),
                   k_i32(k, (int64_t)s->out.n_groups * WGMMA_GROUP_THREADS)};
    k_asm(k, k->void_type, "bar.sync $0, $1;", "r,r,~{memory}", args, 2, true);
}

/* Both consumers come here: they take the same tiles. */
void wgmma_rows_take_infinite(const WgmmaRows *s, Val at) {
    const Codegen *k = s->k;
    ValuesAt values = {s, at};
    wgmma_rows_add_infinite(s, pair_at, &values);
    consumers_meet(s);
    Loop loop = loop_begin(k, k_muli(k, s->out.thread, WORD_BYTES), k_i32(k, s->values.bytes),
                           (int64_t)s->out.n_groups * WGMMA_GROUP_THREADS * WORD_BYTES);
    Val place = k_byte(k, at, loop.index);
    k_store(k, wgmma_rows_finite(s, k_load(k, k->i32, place)), place);
    loop_end(k, &loop);
    k_intrinsic_0(k, "llvm.nvvm.fence.proxy.async.shared_cta");
    consumers_meet(s);
}

/* Element `number` (i32) of the tile: its coordinates along the operand's axis and along k, and its
 * place in shared memory. */
typedef struct TileElement {
    Val own, k, at; /* i32 */
} TileElement;

static TileElement element_of(const WgmmaRows *s, const OperandTile *tile, Val number) {
    const Codegen *k = s->k;
    uint32_t rows = tile->is_mn_major ? tile->depth : tile->own;
    Val line = k_udivi(k, number, WGMMA_ROWS_BLOCK_ELEMS),
        along = k_uremi(k, number, WGMMA_ROWS_BLOCK_ELEMS);
    Val row = k_uremi(k, line, rows);
    Val fast = k_madi(k, k_udivi(k, line, rows), WGMMA_ROWS_BLOCK_ELEMS, along);
    Val turn = k_muli(k, k_andi(k, row, 7), ACCESS_BYTES);
    Val at = k_xor(k, k_muli(k, along, GEMM_ROWS_GEMM_ELEM_BYTES), turn);
    at = k_madi(k, line, WGMMA_SWIZZLE_BYTES, at);
    return tile->is_mn_major ? (TileElement){fast, row, at} : (TileElement){row, fast, at};
}

/* The element's bits (i16), 0 outside the operand. */
static Val element_bits(const WgmmaRows *s, const OperandTile *tile, const GemmBlock *block,
                        TilePlace place, TileElement element) {
    const Codegen *k = s->k;
    Lower *lower = tile->lower;
    const Kernel *kernel = lower->kernel;
    bool is_left = tile->axis == gemm_axis_m(kernel);
    const Reduce *reduce = &kernel->reduces.data[0];
    Point point = point_inside(&block->point);
    Val own = k_add(k, place.own, gpu_index(lower, element.own));
    Val along_k = k_add(k, place.k, gpu_index(lower, element.k));
    Val is_own = k_ult(k, own, lower_extent(lower, tile->axis));
    point.lanes = 1;
    point.active = k_and(k, is_own, k_ult(k, along_k, lower_extent(lower, gemm_axis_k(kernel))));
    point.axis[tile->axis] = own;
    point.axis[gemm_axis_k(kernel)] = along_k;
    Val bits = k_bitcast(k, point_value(&point, is_left ? reduce->lhs : reduce->rhs), k->i16);
    return k_select(k, point.active, bits, k_int(k->i16, 0));
}

void wgmma_rows_compute_tile(const WgmmaRows *s, const OperandTile *tile, const GemmBlock *block,
                             TilePlace place, Val barrier) {
    const Codegen *k = s->k;
    Val any = k_i32(k, 0), count = k_i32(k, WGMMA_GROUP_THREADS),
        number = k_i32(k, PRODUCER_BARRIER);
    Loop loop = loop_begin(k, s->out.in_group, k_i32(k, tile->bytes / GEMM_ROWS_GEMM_ELEM_BYTES),
                           WGMMA_GROUP_THREADS);
    loop_carry(k, &loop, &any, 1);
    TileElement element = element_of(s, tile, loop.index);
    Val bits = element_bits(s, tile, block, place, element);
    k_store(k, bits, k_byte(k, place.to, element.at));
    if (place.flag) any = k_or(k, any, wgmma_rows_next_exponents(s, k_zext(k, bits, k->i32)));
    loop_end(k, &loop);
    if (place.flag) set_flag(s, place.flag, wgmma_rows_is_infinite(s, any));
    k_intrinsic_0(k, "llvm.nvvm.fence.proxy.async.shared_cta");
    Val args[2] = {number, count};
    k_asm(k, k->void_type, "bar.sync $0, $1;", "r,r,~{memory}", args, 2, true);
    If one = if_begin(k, k_eqi(k, s->out.in_group, 0));
    gpu_mbarrier_arrive(k, barrier);
    if_end(k, &one);
}
