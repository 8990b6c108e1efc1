/* What the GPU templates share: thread indices, barriers, shuffles, shared memory, clusters. */
#ifndef FUSEC_CODEGEN_GPU_GPU_H
#define FUSEC_CODEGEN_GPU_GPU_H

#include "codegen/scalar/acc.h"
#include "codegen/template.h"
#include "machine/machine.h"
#include "plan/launch.h"

enum { WARP = WARP_THREADS, GPU_SHARED_ALIGN = 16 /* bytes, of arrays in shared memory */ };

Val gpu_thread(const Codegen *k);  /* i32 */
Val gpu_block(const Lower *lower); /* index_type; among the blocks of its kernel */
/* i32 (thread and tile arithmetic) as index_type. */
Val gpu_index(const Lower *lower, Val i32);
Val gpu_special(const Codegen *k, const char *name); /* a special register, i32 */
void gpu_barrier(const Codegen *k);
void gpu_warp_barrier(const Codegen *k);
/* Copies from memory to shared memory that the thread has begun: a group ends, and a wait until at
 * most `n_pending` of its last groups are under way. */
void gpu_copies_commit(const Codegen *k);
void gpu_copies_wait(const Codegen *k, uint32_t n_pending);
/* The value of lane (own lane xor offset); f32, f64 or i32. All lanes of the warp must call it. */
Val gpu_shuffle_xor(const Codegen *k, Val value, uint32_t offset);
/* An array in shared memory that several kernels of a function use one after the other: each begins
 * with nothing used. Between begin and end its length is open: it becomes the most that any of them
 * took. */
typedef struct SharedPool {
    Val array;
    uint32_t n_bytes, n_used;
} SharedPool;
void gpu_pool_begin(Codegen *k, SharedPool *pool);
void gpu_pool_end(Codegen *k);
/* An array in shared memory, named after the kernel too: no two of the artifact are the same. Of
 * the unit's pool where it has one. */
Val gpu_shared(const Codegen *k, LLVMTypeRef element, uint32_t n, const char *name);
/* The launch's dynamic shared memory: bytes, aligned to 1024. launch_shared_bytes come first, then
 * the buffers that the launch keeps in shared memory. */
Val gpu_shared_dynamic(const Codegen *k);
/* Bytes that the kernels of a launch use one after the other: of dynamic shared memory where the
 * launch has as many, else of an array of the function. */
Val gpu_tiles(Lower *lower, uint32_t n_bytes, uint32_t align_bytes);
/* Clusters: Sched.cluster blocks numbered side by side, which see each other's shared memory. Every
 * thread of all of them arrives once and waits once; what was written before the one is seen after
 * the other. */
void gpu_cluster_arrive(const Codegen *k);
/* Arrives without promising that anything written before is seen. */
void gpu_cluster_begin(const Codegen *k);
void gpu_cluster_wait(const Codegen *k);
/* The place of `pointer` (in own shared memory) in that of block `rank` (i32) of the cluster. */
Val gpu_cluster_at(const Codegen *k, Val pointer, Val rank);
/* Writes an i32 or i64 to such a place and counts its bytes at that block's barrier. */
void gpu_cluster_send(const Codegen *k, Val value, Val pointer, Val barrier, Val rank);
/* An mbarrier: 8 bytes in shared memory. Its phase ends when as many threads have arrived as init
 * says and all expected bytes have. One thread inits the barriers and publishes them to the
 * cluster; then all threads wait for one another. */
void gpu_mbarrier_init(const Codegen *k, Val barrier, uint32_t n_arrivals);
void gpu_mbarrier_publish(const Codegen *k);
/* Arrives, and expects bytes in the current phase. */
void gpu_mbarrier_expect(const Codegen *k, Val barrier, uint32_t n_bytes);
/* Until the phase of this parity (i32) has ended; is_of_cluster: what other blocks sent is seen. */
void gpu_mbarrier_wait(const Lower *lower, Val barrier, Val parity, bool is_of_cluster);
/* Where launches overlap: the entry block ends with the wait for the launches before, ahead of all
 * accesses to memory. When it is over, those launches have ended and what they wrote is seen.
 * `lowers` are the kernels of a one-block launch; of others the first is enough. */
void gpu_begin(Lower *lowers, const Launch *launch);
/* Where the kernel writes as it reads, more than caches hold: what it reads once is the last that
 * the last cache gives up, so that what it has written leaves for memory in between. Else the two
 * wait for one another there. A template calls it once, before it loads. */
void gpu_stream(Lower *lower);
/* From here on the next launch's blocks may come in, if this one is to let them and has not yet. A
 * template whose launch may calls it once. */
void gpu_pdl_trigger(Lower *lower);
/* An instruction of overlapping launches, which no access to memory moves past, except loads of
 * what never changes. */
void gpu_pdl_say(const Codegen *k, const char *text);
/* The kernels of a one-block launch, one after the other, each a template over all blocks of its
 * grid. `pointers` are the places in memory, per kernel and argument, of what is copied. */
void gpu_one_block(Lower *turns, const Launch *launch, Val *const *pointers);
/* Asks for what they copy to be brought to L2: no value is read, so it may be written meanwhile. */
void gpu_one_block_prefetch(const Lower *turns, const Launch *launch);
/* Parallel kernels: a body for each code, in the order of their blocks. `launch` has what all
 * bodies know before they branch. */
void gpu_parallel(Lower *launch, Lower *bodies, uint32_t n_bodies);

#endif
