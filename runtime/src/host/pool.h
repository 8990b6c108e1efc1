/* Threads for fork-join jobs. Threads claim chunks, and the calling thread takes what is left, so a
 * sleeping worker never delays a job. Any thread may run a chunk, but the chunks themselves do not
 * depend on the threads. The pool runs one job at a time; a second concurrent caller runs its job
 * alone. */
#ifndef FRT_POOL_H
#define FRT_POOL_H

#include <fusert.h>

typedef struct Pool Pool;

enum { POOL_MAX_THREADS = 256 };

/* `n_threads` (at least 1) counts the calling thread; the others have `n_stack` bytes of stack.
 * FRT_E_OUT_OF_MEMORY, _THREADS. */
frt_status pool_create(int n_threads, size_t n_stack, Pool **pool, frt_error *err);
void pool_free(Pool *pool);
int pool_n_threads(const Pool *pool);

/* Calls body(ctx, i) for each i in [0, n) and returns when all calls have returned. n < 2^32 -
 * 1. */
void pool_run(Pool *pool, int64_t n, frt_parallel_body body, void *ctx);

#endif
