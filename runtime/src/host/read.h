/* Reading a range of a file. */
#ifndef FRT_READ_H
#define FRT_READ_H

#include <stddef.h>
#include <stdint.h>

/* Reads bytes [at, at + n_bytes) of an open file, again after every interrupt. Returns how many
 * were read: fewer than n_bytes only if the file ends before; -1, with errno, on an error. */
int64_t read_at(int file, void *to, size_t n_bytes, uint64_t at);

#endif
