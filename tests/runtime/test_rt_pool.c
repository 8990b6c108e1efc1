/* The claiming thread pool: each chunk once, whoever asks, however often. */
#include "../../runtime/src/host/pool.h"
#include "../fake/fake_mem.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { MAX_CHUNKS = 1000, STACK_BYTES = 1 << 20 };

typedef struct Tally {
    _Atomic int counts[MAX_CHUNKS];
    _Atomic int n_threads;
    pthread_t caller;
    _Atomic int n_foreign; /* chunks not run by the caller */
    long nap_ns;           /* each chunk takes this long */
} Tally;

static void count_chunk(void *ctx, int64_t i) {
    Tally *tally = ctx;
    atomic_fetch_add(&tally->counts[i], 1);
    atomic_fetch_add(&tally->n_foreign, !pthread_equal(pthread_self(), tally->caller));
    if (tally->nap_ns) {
        nanosleep(&(struct timespec){0, tally->nap_ns}, NULL);
    }
}

static void expect_once(const Tally *tally, int64_t n) {
    for (int64_t i = 0; i < MAX_CHUNKS; i++) {
        cr_assert_eq(tally->counts[i], i < n, "chunk %ld of %ld ran %d times", (long)i, (long)n,
                     tally->counts[i]);
    }
}

static Tally tallies[4];

static void run_once(Pool *pool, Tally *tally, int64_t n, long nap_ns) {
    for (int i = 0; i < MAX_CHUNKS; i++) {
        tally->counts[i] = 0;
    }
    tally->caller = pthread_self();
    tally->n_foreign = 0;
    tally->nap_ns = nap_ns;
    pool_run(pool, n, count_chunk, tally);
    expect_once(tally, n);
}

Test(rt_pool, each_chunk_runs_once) {
    for (int n_threads = 1; n_threads <= 9; n_threads += 2) {
        Pool *pool = NULL;
        cr_assert_eq(pool_create(n_threads, STACK_BYTES, &pool, NULL), FRT_OK);
        cr_expect_eq(pool_n_threads(pool), n_threads);
        for (int i = 0; i < 400; i++) {
            run_once(pool, &tallies[0], i % 17, 0);
        }
        run_once(pool, &tallies[0], MAX_CHUNKS, 0);
        pool_free(pool);
    }
    cr_expect_eq(fake_mem_live(), 0);
}

Test(rt_pool, workers_take_part_after_sleeping) {
    Pool *pool = NULL;
    cr_assert_eq(pool_create(3, STACK_BYTES, &pool, NULL), FRT_OK);
    for (int i = 0; i < 5; i++) {
        nanosleep(&(struct timespec){0, 5000000}, NULL); /* long enough for all to sleep */
        run_once(pool, &tallies[0], 30, 1000000);
        cr_expect_gt(tallies[0].n_foreign, 0, "the caller did all the work alone");
    }
    pool_free(pool);
}

#if defined(__x86_64__)
static _Atomic int n_unusual;

static void check_state(void *ctx, int64_t i) {
    (void)i;
    bool is_worker = !pthread_equal(pthread_self(), *(pthread_t *)ctx);
    atomic_fetch_add(&n_unusual, is_worker && (_mm_getcsr() & 0xffc0) != 0x1f80);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

Test(rt_pool, workers_have_default_floating_point_whatever_their_creator_has) {
    Pool *pool = NULL;
    pthread_t caller = pthread_self();
    _mm_setcsr(0xffc0);
    cr_assert_eq(pool_create(3, STACK_BYTES, &pool, NULL), FRT_OK);
    pool_run(pool, 30, check_state, &caller);
    _mm_setcsr(0x1f80);
    pool_free(pool);
    cr_expect_eq(n_unusual, 0, "%d chunks ran with the creator's state", n_unusual);
}
#endif

typedef struct Client {
    Pool *pool;
    Tally *tally;
} Client;

static void *be_client(void *arg) {
    const Client *client = arg;
    for (int i = 0; i < 2000; i++) {
        run_once(client->pool, client->tally, 1 + i % 50, 0);
    }
    return NULL;
}

Test(rt_pool, callers_in_many_threads_share_it, .timeout = 60) {
    Pool *pool = NULL;
    pthread_t threads[4];
    Client clients[4];
    cr_assert_eq(pool_create(3, STACK_BYTES, &pool, NULL), FRT_OK);
    for (int i = 0; i < 4; i++) {
        clients[i] = (Client){pool, &tallies[i]};
        cr_assert_eq(pthread_create(&threads[i], NULL, be_client, &clients[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    pool_free(pool);
}

Test(rt_pool, creation_and_end_leave_nothing) {
    for (int i = 0; i < 100; i++) {
        Pool *pool = NULL;
        cr_assert_eq(pool_create(1 + i % 5, STACK_BYTES, &pool, NULL), FRT_OK);
        pool_free(pool);
    }
    Pool *pool = NULL;
    frt_error err = FRT_ERROR_INIT;
    fake_mem_fail_at(1, 0);
    cr_expect_eq(pool_create(2, STACK_BYTES, &pool, &err), FRT_E_OUT_OF_MEMORY);
    pool_free(NULL);
    cr_expect_eq(fake_mem_live(), 0);
}
