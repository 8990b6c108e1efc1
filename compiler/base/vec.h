/* Typed growable arrays on an arena: `Vec(T) v = {0}; vec_push(arena, &v, item);`. Old storage
 * stays in the arena, so growing costs at most the final size once more. */
#ifndef FUSEC_BASE_VEC_H
#define FUSEC_BASE_VEC_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define Vec(T)                \
    struct {                  \
        T *data;              \
        uint32_t n, capacity; \
    }

typedef Vec(uint32_t) VecU32;

enum { VEC_FIRST_ELEMS = 8, VEC_FIRST_BYTES = 512 };

/* The capacity of a vector with its first element: fewer of large elements, as most vectors are
 * short. */
static inline uint32_t vec_first_capacity(size_t elem_bytes) {
    size_t n = VEC_FIRST_BYTES / elem_bytes;
    return n < 1 ? 1 : n > VEC_FIRST_ELEMS ? VEC_FIRST_ELEMS : (uint32_t)n;
}

/* An arena keeps the storage that a vector has left. Of memory that nobody has touched it uses
 * none, so that a large vector grows fast. */
static inline uint32_t vec_next_capacity(uint32_t capacity, size_t elem_bytes) {
    bool is_large = capacity < UINT32_MAX / 4 && capacity * elem_bytes >= (size_t)1 << 20;
    return capacity * (is_large ? 4 : 2);
}

/* Returns storage with capacity for one more element. */
static inline void *vec_grown(Arena *arena, void *data, uint32_t n, uint32_t *capacity,
                              size_t elem_bytes) {
    if (n < *capacity) return data;
    uint32_t wanted =
        *capacity ? vec_next_capacity(*capacity, elem_bytes) : vec_first_capacity(elem_bytes);
    if (wanted <= n) ice(arena, "array of more than 2^31 elements");
    if (wanted > SIZE_MAX / 2 / elem_bytes) ice(arena, "array of more than SIZE_MAX / 2 bytes");
    size_t n_bytes = *capacity * elem_bytes;
    *capacity = wanted;
    return arena_extend(arena, data, n_bytes, wanted * elem_bytes);
}

static inline bool vec_among(const uint32_t *data, uint32_t n, uint32_t value) {
    for (uint32_t i = 0; i < n; i++)
        if (data[i] == value) return true;
    return false;
}

/* Whether a vector of uint32_t contains the value. */
#define vec_has(v, value) vec_among((v)->data, (v)->n, (value))

/* Gives an empty vector storage for n elements at once. */
#define vec_reserve(arena, v, n_elems)                                     \
    ((v)->data = arena_alloc_array((arena), (n_elems), sizeof *(v)->data), \
     (v)->capacity = (n_elems))

#define vec_push(arena, v, ...)                                                            \
    ((v)->data = vec_grown((arena), (v)->data, (v)->n, &(v)->capacity, sizeof *(v)->data), \
     (v)->data[(v)->n++] = (__VA_ARGS__))

#endif
