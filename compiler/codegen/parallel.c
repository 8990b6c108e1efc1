/* Launches of parallel kernels (horizontal fusion). See gpu.h and plan/launch.h.
 *
 * The grid is divided into ranges of blocks, one range per kernel. Kernels with the same code share
 * one body, which picks the pointers of its block's kernel. Kernels with other code have other
 * bodies. A block runs one body, so the bodies share one allocation of shared memory. */
#include "codegen/gpu/gpu.h"

/* Finds the block's kernel among those of the body, and sets the block's number within the kernel
 * and the kernel's pointers. `block` counts from the body's first block; every kernel has `n_each`
 * blocks. */
static void select_kernel(Lower *body, Val block, Val n_each) {
    const Codegen *k = body->k;
    Val begin = NULL;
    uint32_t n_args = body->kernel->args.n;
    body->block = block;
    for (uint32_t number = 1; number < body->n_kernels; number++) {
        begin = begin ? k_add(k, begin, n_each) : n_each;
        Val is_past = k_uge(k, block, begin);
        Val within = k_sub(k, block, begin);
        body->block = k_select(k, is_past, within, body->block);
        for (uint32_t i = 0; i < n_args; i++) {
            Val own = LLVMGetParam(body->function, body->first_param + number * n_args + i);
            body->pointers[i] = k_select(k, is_past, own, body->pointers[i]);
        }
    }
}

/* The body has its own entry block for values computed once, so that other bodies' blocks do not
 * compute them. */
static void run_body(Lower *body, Val block, Val n_each) {
    Codegen *k = body->k;
    body->entry = k_here(k);
    select_kernel(body, block, n_each);
    LLVMBasicBlockRef begin = k_block(k, "body");
    LLVMBasicBlockRef end = k_block(k, "done");
    k_goto(k, begin);
    k->overlaps_quotients = form_info(body->kernel->form)->multiplies;
    template_emit(body);
    k_br(k, end);
    k_goto(k, body->entry);
    k_br(k, begin);
    k_goto(k, end);
}

void gpu_parallel(Lower *launch, Lower *bodies, uint32_t n_bodies) {
    Codegen *k = launch->k;
    SharedPool pool = {.array = NULL};
    bool has_pool = n_bodies > 1 && template_info(bodies->variant->sched.template)->pools_shared;
    if (has_pool) gpu_pool_begin(k, &pool);
    LLVMBasicBlockRef all_done = k_block(k, "finished");
    Val block = k_intrinsic_0(k, gpu_isa(k)->block);
    for (uint32_t i = 0; i < n_bodies; i++) {
        Lower *body = &bodies[i];
        Val n_each = lower_dim(launch, body->variant->grid);
        n_each = k_index_cast(k, n_each, k->i32);
        Val end = k_muli(k, n_each, body->n_kernels);
        LLVMBasicBlockRef own = k_block(k, "part"), next = all_done;
        if (i + 1 < n_bodies) {
            next = k_block(k, "next");
            Val is_own = k_ult(k, block, end);
            k_cond_br(k, is_own, own, next);
        } else {
            k_br(k, own);
        }
        k_goto(k, own);
        pool.n_used = 0;
        run_body(body, block, n_each);
        k_br(k, all_done);
        k_goto(k, next);
        if (i + 1 < n_bodies) block = k_sub(k, block, end);
    }
    if (has_pool) gpu_pool_end(k);
}
