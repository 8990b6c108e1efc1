/* What the GPU templates share: thread indices, barriers, shuffles, shared memory, clusters. */
#ifndef FUSEC_GPU_H
#define FUSEC_GPU_H

#include "back/acc.h"
#include "back/template.h"

enum { WARP = 32 };

LLVMValueRef gpu_thread(const Unit *unit);  /* i32 */
LLVMValueRef gpu_block(const Lower *lower); /* index_type; within its part of the launch */
LLVMValueRef gpu_special(const Unit *unit, const char *name); /* a special register, i32 */
void gpu_barrier(const Unit *unit);
/* The value of lane (own lane xor offset); f32, f64 or i32. All lanes of the warp take part. */
LLVMValueRef gpu_shuffle_xor(const Unit *unit, LLVMValueRef value, uint32_t offset);
/* One array that several kernels of a function use one after the other: each begins with nothing
 * used. Between begin and end it stands for one as long as turns out to be needed. */
typedef struct SharedPool {
    LLVMValueRef array;
    uint32_t n_bytes, n_used;
} SharedPool;
void gpu_pool_begin(Unit *unit, SharedPool *pool);
void gpu_pool_end(Unit *unit);
/* An array in shared memory, named after the kernel too: no two of the artifact are the same. Of
 * the unit's pool where it has one. */
LLVMValueRef gpu_shared(const Unit *unit, LLVMTypeRef element, uint32_t n, const char *name);
/* The launch's dynamic shared memory: bytes, aligned to 1024. First come launch_shared_bytes,
 * then what the launch keeps on chip. */
LLVMValueRef gpu_shared_dynamic(const Unit *unit);
/* Bytes that the phases of a launch use one after the other: of dynamic shared memory where the
 * launch has as many, else of the kernel's own. */
LLVMValueRef gpu_tiles(Lower *lower, uint32_t n_bytes, uint32_t align_bytes);
/* Clusters: Sched.cluster blocks numbered side by side, which see each other's shared memory. Every
 * thread of all of them arrives once and waits once; what was written before the one is seen after
 * the other. */
void gpu_cluster_arrive(const Unit *unit);
/* Arrives without promising that anything written before is seen. */
void gpu_cluster_begin(const Unit *unit);
void gpu_cluster_wait(const Unit *unit);
/* The place of `pointer` (in own shared memory) in that of block `rank` (i32) of the cluster. */
LLVMValueRef gpu_cluster_at(const Unit *unit, LLVMValueRef pointer, LLVMValueRef rank);
/* Writes an i32 or i64 to such a place and counts its bytes at that block's barrier. */
void gpu_cluster_send(const Unit *unit, LLVMValueRef value, LLVMValueRef pointer,
                      LLVMValueRef barrier, LLVMValueRef rank);
/* Barriers in shared memory (8 bytes). A phase ends when as many have arrived as init says and all
 * bytes that were expected are there. One thread inits some, publishes them to the cluster, and
 * then all meet. */
void gpu_mbarrier_init(const Unit *unit, LLVMValueRef barrier, uint32_t n_arrivals);
void gpu_mbarrier_publish(const Unit *unit);
/* Arrives, and expects bytes in the current phase. */
void gpu_mbarrier_expect(const Unit *unit, LLVMValueRef barrier, uint32_t n_bytes);
/* Until the phase of this parity (i32) has ended; is_of_cluster: what other blocks sent is seen. */
void gpu_mbarrier_wait(const Lower *lower, LLVMValueRef barrier, LLVMValueRef parity,
                       bool is_of_cluster);
/* Where launches overlap: first of all the finished function waits until the launches before have
 * ended and what they wrote is seen, then it lets the next kernel's blocks come in. */
void gpu_wait_for_earlier(const Unit *unit, LLVMValueRef function);
/* Turns of a launch's only block, each a template over all blocks of its grid. `pointers` are the
 * places in memory, per kernel and argument, of what is copied. */
void gpu_turns(Lower *turns, const Launch *launch, LLVMValueRef *const *pointers,
               void (*const templates[])(Lower *));
LLVMValueRef gpu_shared_at(const Unit *unit, LLVMValueRef array, LLVMTypeRef element,
                           LLVMValueRef index);

#endif
