/* Code common to the GPU templates: thread indices, barriers, shuffles, shared memory, clusters. */
#ifndef FUSEC_CODEGEN_GPU_GPU_H
#define FUSEC_CODEGEN_GPU_GPU_H

#include "codegen/scalar/acc.h"
#include "codegen/template.h"
#include "machine/machine.h"
#include "plan/launch.h"

enum { GPU_SHARED_ALIGN = 16 /* bytes, of arrays in shared memory */ };

/* What kernels of the target's device class have in LLVM's names: see isas.def. */
typedef struct GpuIsa {
    unsigned calling_convention;
    const char *thread, *block;
    const char *threads_key, *before_threads, *after_threads;
    const char *blocks_key;
    bool has_maps_alone;
} GpuIsa;
const GpuIsa *gpu_isa(const Codegen *k);
/* Whether codegen has the template's code for the target's device class. */
bool gpu_isa_has(const Target *target, TemplateId id);
Val gpu_thread(const Codegen *k); /* i32 */
/* The number of the block within its kernel: i32, and of index_type. */
Val gpu_block_number(const Lower *lower);
Val gpu_block(const Lower *lower);
/* Extends an i32 (thread and tile arithmetic) to index_type. */
Val gpu_index(const Lower *lower, Val i32);
/* The number (index_type) of the thread's first step in the grid, if a block has `per_thread` steps
 * for each thread; further steps are sched.threads apart. */
Val gpu_step(const Lower *lower, uint32_t per_thread);
Val gpu_special(const Codegen *k, const char *name); /* a special register, i32 */
/* Asks ptxas for so few registers that a multiprocessor can hold this many blocks. */
void gpu_ask_for_blocks(const Lower *lower, uint32_t n);
void gpu_barrier(const Codegen *k);
void gpu_warp_barrier(const Codegen *k);
/* Asynchronous copies (cp.async) of the thread: commit ends a group; wait returns when at most
 * `n_pending` of the last groups are incomplete. */
void gpu_copies_commit(const Codegen *k);
void gpu_copies_wait(const Codegen *k, uint32_t n_pending);
/* The value of lane (own lane xor offset), of type f32, f64 or i32. All lanes of the warp must call
 * it. */
Val gpu_shuffle_xor(const Codegen *k, Val value, uint32_t offset);
/* Whether the predicate (i1) holds in a thread of the warp, all of which are here. */
Val gpu_any_of_warp(const Codegen *k, Val predicate);
/* The threads for which it holds, a bit for each: i32. */
Val gpu_threads_of_warp(const Codegen *k, Val predicate);
/* An array in shared memory that several kernels of a function reuse one after the other. Each
 * kernel starts with an empty pool. gpu_pool_end sets the array's length to the largest use between
 * begin and end. */
typedef struct SharedPool {
    Val array;
    uint32_t n_bytes, n_used;
} SharedPool;
void gpu_pool_begin(Codegen *k, SharedPool *pool);
void gpu_pool_end(Codegen *k);
/* An array of `n` elements in shared memory. Its name contains the kernel's name, so no two arrays
 * of the artifact share one. It comes from the pool, if the Codegen has one. */
Val gpu_shared(const Codegen *k, LLVMTypeRef element, uint32_t n, const char *name);
/* The launch's dynamic shared memory, aligned to 1024 bytes. First come launch_shared_bytes for the
 * templates, then the buffers that the launch keeps in shared memory. */
Val gpu_shared_dynamic(const Codegen *k);
/* `n_bytes` of shared memory that the kernels of a launch reuse one after the other. They are part
 * of dynamic shared memory if the launch has enough, else an array of the function. */
Val gpu_tiles(Lower *lower, uint32_t n_bytes, uint32_t align_bytes);
/* Clusters: Sched.cluster neighbouring blocks that access each other's shared memory. Every thread
 * of the cluster arrives once and waits once; writes before the arrive are visible after the
 * wait. */
void gpu_cluster_arrive(const Codegen *k);
/* Arrives without releasing earlier writes (barrier.cluster.arrive.relaxed). */
void gpu_cluster_begin(const Codegen *k);
void gpu_cluster_wait(const Codegen *k);
/* Maps `pointer` into this block's shared memory to the same offset in block `rank` (i32) of the
 * cluster. */
Val gpu_cluster_at(const Codegen *k, Val pointer, Val rank);
/* Writes an i32 or i64 to a mapped address; the mbarrier of that block counts the bytes. */
void gpu_cluster_send(const Codegen *k, Val value, Val pointer, Val barrier, Val rank);
/* An mbarrier: 8 bytes in shared memory. Its phase completes when n_arrivals threads have arrived
 * and all expected bytes have too. One thread initializes the barriers and publishes them to the
 * cluster; then all threads synchronize. */
void gpu_mbarrier_init(const Codegen *k, Val barrier, uint32_t n_arrivals);
void gpu_mbarrier_publish(const Codegen *k);
/* One thread arrives at a barrier of its block. */
void gpu_mbarrier_arrive(const Codegen *k, Val barrier);
/* Arrives, and expects `n_bytes` more bytes in the current phase. */
void gpu_mbarrier_expect(const Codegen *k, Val barrier, uint32_t n_bytes);
/* Waits until the phase of this parity (i32) has completed. is_of_cluster: data sent by other
 * blocks is then visible. */
void gpu_mbarrier_wait(const Lower *lower, Val barrier, Val parity, bool is_of_cluster);
/* PDL: ends the entry block with the wait for earlier launches (griddepcontrol.wait), ahead of all
 * memory accesses. After the wait those launches have ended and their writes are visible. `lowers`
 * are the kernels of a one-block launch; in other modes the first kernel is enough. */
void gpu_begin(Lower *lowers, const Launch *launch);
/* For a kernel that reads and writes more than L2 holds: sets a policy by which data read once is
 * evicted last, so that written data leaves for memory between the reads. Otherwise reads and
 * writes wait for each other in L2. A template calls it once, before its loads. */
void gpu_stream(Lower *lower);
/* PDL: from here on the blocks of the next launch may start (griddepcontrol.launch_dependents), if
 * this launch allows it and has not triggered yet. Every template that may do so calls it once. */
void gpu_pdl_trigger(Lower *lower);
/* Emits a PDL instruction. No memory access moves past it, except loads of constant data. */
void gpu_pdl_say(const Codegen *k, const char *text);
/* Emits the kernels of a one-block launch one after the other, each over all blocks of its grid.
 * `pointers` are the global addresses, per kernel and argument, of copied tensors. */
void gpu_one_block(Lower *lowers, const Launch *launch, Val *const *pointers);
/* Prefetches the copied tensors to L2. It reads no value, so earlier launches may still write
 * them. */
void gpu_one_block_prefetch(const Lower *lowers, const Launch *launch);
/* Emits parallel kernels: one body for each code, in the order of their blocks. `launch` holds
 * values that all bodies share. */
void gpu_parallel(Lower *launch, Lower *bodies, uint32_t n_bodies);

/* The columns of the kernel's band (plan/kernel.h) at the point of a row: index_type. */
typedef struct GpuBand {
    Val first, end;
} GpuBand;
GpuBand gpu_band(const Point *row);

#endif
