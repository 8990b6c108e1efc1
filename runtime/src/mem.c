/* Host memory from the C library. */
#include "mem.h"

#include <fusert.h>
#include <stdint.h>
#include <stdlib.h>

void *mem_alloc(size_t n, size_t size) {
    return calloc(n ? n : 1, size ? size : 1);
}

void *mem_alloc_aligned(size_t n_bytes) {
    if (n_bytes > PTRDIFF_MAX - FRT_ALIGNMENT) {
        return NULL;
    }
    size_t whole = (n_bytes + FRT_ALIGNMENT - 1) / FRT_ALIGNMENT * FRT_ALIGNMENT;
    return aligned_alloc(FRT_ALIGNMENT, whole ? whole : FRT_ALIGNMENT);
}

void *mem_resize(void *data, size_t n, size_t size) {
    if (size && n > PTRDIFF_MAX / size) {
        return NULL;
    }
    size_t n_bytes = n * size;
    return realloc(data, n_bytes > 0 ? n_bytes : 1);
}

void mem_free(void *data) {
    free(data);
}
