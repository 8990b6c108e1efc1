/* See sha256.h. */
#include "host/sha256.h"

#include <string.h>

/* The fraction bits of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

/* The 16 words of a block and the 48 that follow from them. */
static void expand(const uint8_t *block, uint32_t w[64]) {
    for (int i = 0; i < 16; i++) {
        const uint8_t *b = block + 4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15];
        uint32_t b = w[i - 2];
        uint32_t mixed_a = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3;
        uint32_t mixed_b = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + mixed_a + w[i - 7] + mixed_b;
    }
}

static void take_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64];
    uint32_t s[8]; /* a to h of the standard */
    expand(block, w);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t t1 = s[7] + e + choice + round_constants[i] + w[i];
        uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + a + majority;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

void sha256_begin(Sha256 *hash) {
    *hash = (Sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(Sha256 *hash, const void *bytes, size_t n_bytes) {
    const uint8_t *p = bytes;
    while (n_bytes > 0) {
        size_t filled = hash->n_bytes % SHA256_BLOCK_BYTES;
        size_t n = SHA256_BLOCK_BYTES - filled < n_bytes ? SHA256_BLOCK_BYTES - filled : n_bytes;
        memcpy(hash->block + filled, p, n);
        hash->n_bytes += n;
        p += n;
        n_bytes -= n;
        if (hash->n_bytes % SHA256_BLOCK_BYTES == 0) {
            take_block(hash->state, hash->block);
        }
    }
}

void sha256_end(Sha256 *hash, uint8_t digest[SHA256_BYTES]) {
    static const uint8_t padding[SHA256_BLOCK_BYTES] = {0x80};
    uint64_t n_bits = hash->n_bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    }
    size_t filled = hash->n_bytes % SHA256_BLOCK_BYTES;
    sha256_add(hash, padding, (filled < 56 ? 56 : 120) - filled);
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < SHA256_BYTES; i++) {
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
