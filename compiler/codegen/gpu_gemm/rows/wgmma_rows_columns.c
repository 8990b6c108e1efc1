/* Softmax between two products by wgmma: the tiles of columns that a role takes. See wgmma_rows.h.
 *
 * Where rows may not see some columns, a warp looks at 32 tiles at a time, a thread at each. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

static PipelineState next_stage(const WgmmaRows *s, PipelineState place) {
    return pipeline_next(s->k, place, s->n_stages);
}

static void each_whole_columns(WgmmaRows *s, WgmmaRowsWork *work, Val *ring) {
    const Codegen *k = s->k;
    Loop columns = loop_begin(k, s->keys.begin, s->keys.end, s->width);
    loop_carry(k, &columns, ring, 2);
    PipelineState place = {ring[0], ring[1]}, next = next_stage(s, place);
    work(s, columns.index, NULL, place);
    ring[0] = next.stage, ring[1] = next.parity;
    loop_end(k, &columns);
}

/* The tiles of columns that are ahead: of each of a warp's threads one. Variables. */
typedef struct Ahead {
    Val first;     /* index_type: the column of the first */
    Val some, all; /* i32: SeenTiles */
    Val ring[2];   /* i32: the stage and its parity */
} Ahead;

static void look_ahead(const WgmmaRows *s, const Ahead *ahead) {
    const Codegen *k = s->k;
    SeenTiles tiles = wgmma_rows_seen_tiles(s, k_load(k, s->lower->index_type, ahead->first));
    k_store(k, tiles.some, ahead->some);
    k_store(k, tiles.all, ahead->all);
}

/* Takes the first of the tiles ahead that some row sees. */
static void take_columns(WgmmaRows *s, WgmmaRowsWork *work, const Ahead *ahead) {
    const Codegen *k = s->k;
    Val some = k_load(k, k->i32, ahead->some), rest = k_and(k, some, k_subi(k, some, 1));
    Val bit = wgmma_rows_first_seen(s, some);
    Val first = k_load(k, s->lower->index_type, ahead->first);
    Val all = k_nei(k, k_andi(k, k_lshr(k, k_load(k, k->i32, ahead->all), bit), 1), 0);
    PipelineState place = {k_load(k, k->i32, ahead->ring[0]), k_load(k, k->i32, ahead->ring[1])};
    PipelineState next = next_stage(s, place);
    k_store(k, rest, ahead->some);
    k_store(k, next.stage, ahead->ring[0]);
    k_store(k, next.parity, ahead->ring[1]);
    work(s, k_madi(k, gpu_index(s->lower, bit), s->width, first), all, place);
}

void wgmma_rows_each_columns(WgmmaRows *s, WgmmaRowsWork *work, Val *ring) {
    const Codegen *k = s->k;
    if (!wgmma_rows_hide_columns(s)) {
        each_whole_columns(s, work, ring);
        return;
    }
    LLVMTypeRef index_type = s->lower->index_type;
    Ahead ahead = {k_alloca(k, index_type), k_alloca(k, k->i32), k_alloca(k, k->i32), {NULL}};
    LLVMBasicBlockRef look = k_block(k, "look_ahead"), head = k_block(k, "ahead");
    LLVMBasicBlockRef tile = k_block(k, "columns"), none = k_block(k, "none_ahead");
    LLVMBasicBlockRef done = k_block(k, "no_columns");
    for (uint32_t i = 0; i < 2; i++) {
        ahead.ring[i] = k_alloca(k, k->i32);
        k_store(k, ring[i], ahead.ring[i]);
    }
    k_store(k, s->keys.begin, ahead.first);
    k_branch(k, look);
    look_ahead(s, &ahead);
    k_branch(k, head);
    k_cond_br(k, k_nei(k, k_load(k, k->i32, ahead.some), 0), tile, none);
    k_goto(k, tile);
    take_columns(s, work, &ahead);
    k_br(k, head);
    k_goto(k, none);
    Val next = k_addi(k, k_load(k, index_type, ahead.first), (int64_t)WARP_THREADS * s->width);
    k_store(k, next, ahead.first);
    k_cond_br(k, k_slt(k, next, s->keys.end), look, done);
    k_goto(k, done);
    for (uint32_t i = 0; i < 2; i++) ring[i] = k_load(k, k->i32, ahead.ring[i]);
}
