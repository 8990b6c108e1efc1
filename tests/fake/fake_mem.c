/* mem.h over the C library with a counter. Thread-safe, as the runtime's allocations are. */
#include "fake_mem.h"

#include "../../runtime/src/host/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static _Atomic long n_live;
static _Atomic long n_until; /* allocations until one fails; 0 = never */
static _Atomic int is_forever;
static _Atomic int has_failed;

void fake_mem_fail_at(long n, int forever) {
    n_until = n;
    is_forever = forever;
    has_failed = 0;
}

int fake_mem_failed(void) {
    return has_failed;
}

long fake_mem_live(void) {
    return n_live;
}

static int must_fail(void) {
    if (has_failed && is_forever) {
        return 1;
    }
    if (n_until > 0 && atomic_fetch_sub(&n_until, 1) == 1) {
        has_failed = 1;
        return 1;
    }
    return 0;
}

static void *count(void *data) {
    n_live += data != NULL;
    return data;
}

void *mem_alloc(size_t n, size_t size) {
    return must_fail() ? NULL : count(calloc(n ? n : 1, size ? size : 1));
}

void *mem_alloc_aligned(size_t n_bytes) {
    if (must_fail() || n_bytes > (size_t)PTRDIFF_MAX - 256) {
        return NULL;
    }
    return count(aligned_alloc(256, n_bytes / 256 * 256 + 256));
}

void *mem_resize(void *data, size_t n, size_t size) {
    if (must_fail() || (size && n > (size_t)PTRDIFF_MAX / size)) {
        return NULL;
    }
    size_t n_bytes = n * size;
    void *resized = realloc(data, n_bytes > 0 ? n_bytes : 1);
    n_live += resized && !data;
    return resized;
}

void mem_free(void *data) {
    n_live -= data != NULL;
    free(data);
}
