/* Incremental CRC-32C (Castagnoli): start with 0 and feed the bytes in order. */
#ifndef FRT_CRC32C_H
#define FRT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n_bytes);

#endif
