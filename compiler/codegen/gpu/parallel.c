/* Launches of parts. See gpu.h and plan/kernel.h.
 *
 * Each part has blocks of its own, one part's after the other's. Parts of one code are one body,
 * which takes the pointers of its block's part; other codes are other bodies. A block runs one of
 * them, so that all use the same shared memory. */
#include "codegen/gpu/gpu.h"

/* The block's part among those of the body: its number in there, and that part's pointers. `block`
 * counts from the body's first; every part has `n_each`. */
static void take_part(Lower *body, LLVMValueRef block, LLVMValueRef n_each) {
    LLVMBuilderRef builder = body->unit->builder;
    LLVMValueRef begin = NULL;
    uint32_t n_args = body->kernel->args.n;
    body->block = block;
    for (uint32_t part = 1; part < body->n_parts; part++) {
        begin = begin ? LLVMBuildAdd(builder, begin, n_each, "") : n_each;
        LLVMValueRef is_past = LLVMBuildICmp(builder, LLVMIntUGE, block, begin, "");
        LLVMValueRef within = LLVMBuildSub(builder, block, begin, "");
        body->block = LLVMBuildSelect(builder, is_past, within, body->block, "");
        for (uint32_t i = 0; i < n_args; i++) {
            LLVMValueRef own = LLVMGetParam(body->function, body->first_param + part * n_args + i);
            body->pointers[i] = LLVMBuildSelect(builder, is_past, own, body->pointers[i], "");
        }
    }
}

/* What it computes once goes where it begins: the others' blocks do without. */
static void run_body(Lower *body, LLVMValueRef block, LLVMValueRef n_each, GpuTemplate *template) {
    Unit *unit = body->unit;
    body->entry = unit_here(unit);
    take_part(body, block, n_each);
    LLVMBasicBlockRef begin = unit_block(unit, body->function, "body");
    LLVMBasicBlockRef end = unit_block(unit, body->function, "done");
    unit_goto(unit, begin);
    unit->math.overlaps_quotients = body->kernel->form == FORM_GEMM;
    template(body);
    LLVMBuildBr(unit->builder, end);
    unit_goto(unit, body->entry);
    LLVMBuildBr(unit->builder, begin);
    unit_goto(unit, end);
}

/* Tiles of GEMMs are one array for all bodies by themselves. */
static bool has_arrays(const Lower *body) {
    GemmEngine engine = body->variant->sched.engine;
    return body->kernel->form != FORM_GEMM || engine == GEMM_GEMV;
}

void gpu_parallel(Lower *launch, Lower *bodies, uint32_t n_bodies, GpuTemplate *const *templates) {
    Unit *unit = launch->unit;
    LLVMBuilderRef builder = unit->builder;
    SharedPool pool = {.array = NULL};
    bool has_pool = n_bodies > 1 && has_arrays(bodies);
    if (has_pool) gpu_pool_begin(unit, &pool);
    LLVMBasicBlockRef all_done = unit_block(unit, launch->function, "finished");
    LLVMValueRef block = gpu_special(unit, "ctaid.x");
    for (uint32_t i = 0; i < n_bodies; i++) {
        Lower *body = &bodies[i];
        LLVMValueRef n_each = lower_dim(launch, body->variant->grid);
        n_each = unit_index_cast(unit, n_each, unit->i32);
        LLVMValueRef end = LLVMBuildMul(builder, n_each, unit_i32(unit, body->n_parts), "");
        LLVMBasicBlockRef own = unit_block(unit, launch->function, "part"), next = all_done;
        if (i + 1 < n_bodies) {
            next = unit_block(unit, launch->function, "next");
            LLVMValueRef is_own = LLVMBuildICmp(builder, LLVMIntULT, block, end, "");
            LLVMBuildCondBr(builder, is_own, own, next);
        } else {
            LLVMBuildBr(builder, own);
        }
        unit_goto(unit, own);
        pool.n_used = 0;
        run_body(body, block, n_each, templates[body->kernel->form]);
        LLVMBuildBr(builder, all_done);
        unit_goto(unit, next);
        if (i + 1 < n_bodies) block = LLVMBuildSub(builder, block, end, "");
    }
    if (has_pool) gpu_pool_end(unit);
}
