/* Versions of info structs: a caller states the size of its own in `struct_size`. */
#ifndef FRT_API_EXPORT_H
#define FRT_API_EXPORT_H

#include <stddef.h>
#include <string.h>

/* Copy a filled info out without writing past what the caller's version of it holds. */
#define GIVE(info, ...)                                                                  \
    do {                                                                                 \
        size_t n_given =                                                                 \
            (info)->struct_size < sizeof *(info) ? (info)->struct_size : sizeof *(info); \
        size_t n_declared = (info)->struct_size;                                         \
        memcpy((info), &(__VA_ARGS__), n_given);                                         \
        (info)->struct_size = n_declared;                                                \
    } while (0)

#endif
