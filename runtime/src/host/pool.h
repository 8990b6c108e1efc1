/* Threads for fork-join jobs. Chunks are claimed, not handed out: the calling thread takes what
 * nobody else took, so a sleeping worker never delays a job. Which thread runs a chunk is open,
 * what a chunk is never depends on the threads. One job at a time; a second caller meanwhile runs
 * its job alone. */
#ifndef FRT_POOL_H
#define FRT_POOL_H

#include <fusert.h>

typedef struct Pool Pool;

enum { POOL_MAX_THREADS = 256 };

/* `n_threads` (at least 1) counts the calling thread. FRT_E_OUT_OF_MEMORY, _THREADS. */
frt_status pool_create(int n_threads, Pool **pool, frt_error *err);
void pool_free(Pool *pool);
int pool_n_threads(const Pool *pool);

/* body(ctx, i) for each i in [0, n); returns when all are done. n below 2^32 - 1. */
void pool_run(Pool *pool, int64_t n, frt_parallel_body body, void *ctx);

#endif
