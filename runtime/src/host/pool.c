/* A thread pool whose threads claim chunks. A 64-bit ticket {generation, next chunk} publishes a
 * job; a thread claims a chunk by compare-and-swap on the ticket. Invariant: the fields of a job
 * change only while the ticket is closed, and a closed ticket value never returns. So a successful
 * claim belongs to the job whose fields the thread has read. */
#include "host/pool.h"

#include "host/error.h"
#include "host/mem.h"
#include "host/port.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CLOSED 0xffffffffu /* a ticket's next chunk between jobs */

enum { SPIN_NS = 50000 };

struct Pool {
    pthread_mutex_t owner; /* held by the caller of pool_run */
    _Atomic uint64_t ticket;
    _Atomic uint32_t n_chunks;
    _Atomic(frt_parallel_body) body;
    _Atomic(void *) ctx;
    _Atomic uint32_t n_done;
    _Atomic uint32_t is_owner_asleep;
    _Atomic uint32_t wake; /* futex word; changes with each job */
    _Atomic uint32_t n_asleep;
    _Atomic bool is_stopping;
    int n_workers;
    pthread_t workers[POOL_MAX_THREADS];
};

/* Runs one chunk; false when none is left. */
static bool claim_chunk(Pool *pool) {
    uint64_t ticket = atomic_load(&pool->ticket);
    for (;;) {
        uint32_t next = (uint32_t)ticket;
        uint32_t n_chunks = atomic_load(&pool->n_chunks);
        if (next == CLOSED || next >= n_chunks) {
            return false;
        }
        if (atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1)) {
            frt_parallel_body body = atomic_load(&pool->body);
            body(atomic_load(&pool->ctx), next);
            if (atomic_fetch_add(&pool->n_done, 1) + 1 == n_chunks &&
                atomic_load(&pool->is_owner_asleep)) {
                port_futex_wake(&pool->n_done, 1);
            }
            return true;
        }
    }
}

static void *work(void *arg) {
    Pool *pool = arg;
    port_fp_set(PORT_FP_DEFAULT); /* a new thread inherits its creator's flags */
    while (!atomic_load(&pool->is_stopping)) {
        uint32_t seen = atomic_load(&pool->wake);
        int64_t until = 0;
        bool is_idle = true;
        do {
            for (int i = 0; i < 64 && is_idle; i++) {
                is_idle = !claim_chunk(pool);
                port_pause();
            }
            int64_t now = port_clock_ns();
            until = until ? until : now + SPIN_NS;
            is_idle = is_idle && now < until;
        } while (is_idle && atomic_load(&pool->wake) == seen);
        if (atomic_load(&pool->wake) != seen || claim_chunk(pool)) {
            continue;
        }
        atomic_fetch_add(&pool->n_asleep, 1);
        if (!atomic_load(&pool->is_stopping)) {
            port_futex_wait(&pool->wake, seen);
        }
        atomic_fetch_sub(&pool->n_asleep, 1);
    }
    return NULL;
}

static void wake_workers(Pool *pool, int n) {
    atomic_fetch_add(&pool->wake, 1);
    if (atomic_load(&pool->n_asleep) > 0) {
        port_futex_wake(&pool->wake, n);
    }
}

static void wait_for_workers(Pool *pool, uint32_t n_chunks) {
    int64_t until = port_clock_ns() + SPIN_NS;
    uint32_t n_done;
    while ((n_done = atomic_load(&pool->n_done)) != n_chunks) {
        if (port_clock_ns() < until) {
            port_pause();
            continue;
        }
        atomic_store(&pool->is_owner_asleep, 1);
        n_done = atomic_load(&pool->n_done);
        if (n_done != n_chunks) {
            port_futex_wait(&pool->n_done, n_done);
        }
        atomic_store(&pool->is_owner_asleep, 0);
    }
}

void pool_run(Pool *pool, int64_t n, frt_parallel_body body, void *ctx) {
    if (n <= 1 || pool->n_workers == 0 || n >= CLOSED || pthread_mutex_trylock(&pool->owner) != 0) {
        for (int64_t i = 0; i < n; i++) {
            body(ctx, i);
        }
        return;
    }
    uint64_t generation = (atomic_load(&pool->ticket) >> 32) + 1;
    atomic_store(&pool->body, body);
    atomic_store(&pool->ctx, ctx);
    atomic_store(&pool->n_done, 0);
    atomic_store(&pool->n_chunks, (uint32_t)n);
    atomic_store(&pool->ticket, generation << 32);
    wake_workers(pool, n - 1 < pool->n_workers ? (int)n - 1 : pool->n_workers);
    while (claim_chunk(pool)) {
    }
    wait_for_workers(pool, (uint32_t)n);
    atomic_store(&pool->ticket, generation << 32 | CLOSED);
    pthread_mutex_unlock(&pool->owner);
}

int pool_n_threads(const Pool *pool) {
    return pool->n_workers + 1;
}

frt_status pool_create(int n_threads, size_t n_stack, Pool **result, frt_error *err) {
    Pool *pool = mem_alloc(1, sizeof *pool);
    if (!pool) {
        return frt_fail_memory(err, sizeof *pool);
    }
    if (pthread_mutex_init(&pool->owner, NULL) != 0) {
        mem_free(pool);
        return frt_fail(err, FRT_E_THREADS, "cannot make the thread pool's mutex");
    }
    atomic_store(&pool->ticket, CLOSED);
    while (pool->n_workers < n_threads - 1) {
        int code = port_thread_start(&pool->workers[pool->n_workers], n_stack, work, pool);
        if (code != 0) {
            int n_made = pool->n_workers + 1;
            pool_free(pool);
            return frt_fail(err, FRT_E_THREADS, "cannot start thread %d of %d: %s", n_made + 1,
                            n_threads, strerror(code));
        }
        pool->n_workers++;
    }
    *result = pool;
    return FRT_OK;
}

void pool_free(Pool *pool) {
    if (!pool) {
        return;
    }
    atomic_store(&pool->is_stopping, true);
    atomic_fetch_add(&pool->wake, 1);
    port_futex_wake(&pool->wake, POOL_MAX_THREADS);
    for (int i = 0; i < pool->n_workers; i++) {
        pthread_join(pool->workers[i], NULL);
    }
    pthread_mutex_destroy(&pool->owner);
    mem_free(pool);
}
