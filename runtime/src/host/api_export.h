/* Versions of info structs: a caller states the size of its own struct in `struct_size`. */
#ifndef FRT_API_EXPORT_H
#define FRT_API_EXPORT_H

#include <stddef.h>
#include <string.h>

/* Copies a filled info to the caller, but no more bytes than the caller's version has. */
#define GIVE(info, ...)                                                                  \
    do {                                                                                 \
        size_t n_given =                                                                 \
            (info)->struct_size < sizeof *(info) ? (info)->struct_size : sizeof *(info); \
        size_t n_declared = (info)->struct_size;                                         \
        memcpy((info), &(__VA_ARGS__), n_given);                                         \
        (info)->struct_size = n_declared;                                                \
    } while (0)

#endif
