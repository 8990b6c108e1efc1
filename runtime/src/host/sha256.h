/* Incremental SHA-256 (FIPS 180-4). */
#ifndef FRT_SHA256_H
#define FRT_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK_BYTES = 64 };

typedef struct Sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[SHA256_BLOCK_BYTES]; /* its first n_bytes % 64 bytes are filled */
} Sha256;

void sha256_begin(Sha256 *hash);
void sha256_add(Sha256 *hash, const void *bytes, size_t n_bytes);
void sha256_end(Sha256 *hash, uint8_t digest[SHA256_BYTES]);

#endif
