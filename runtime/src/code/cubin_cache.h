/* Cubins that the driver made of PTX, on disk. One file per cubin, named after its key: a hash of
 * the PTX and of everything else that the cubin depends on. A file is written under another name
 * and then renamed, and it is believed only if its header, key, length and checksum are right, so
 * any number of processes may share a folder, and whatever else lies there does no harm.
 *
 * Nothing here fails: what cannot be read is not there, what cannot be written is not kept. */
#ifndef FRT_CUBIN_CACHE_H
#define FRT_CUBIN_CACHE_H

#include "host/sha256.h"

#include <fusert.h>

enum { CUBIN_CACHE_MAX_PATH = 1024, CUBIN_CACHE_BYTES = 256 << 20 };

typedef struct CubinCache {
    bool is_on;
    size_t max_bytes; /* of all files together */
    char folder[CUBIN_CACHE_MAX_PATH];
} CubinCache;

typedef struct CubinKey {
    uint8_t bytes[SHA256_BYTES];
} CubinKey;

/* Where the cache lies by the options and the environment; touches no file. */
void cubin_cache_open(CubinCache *cache, const frt_program_options *options);

/* `made_by` says what the cubin depends on beside the PTX: driver, device, options. */
CubinKey cubin_cache_key(const char *made_by, const void *ptx, size_t n_ptx);

/* The cubin of this key, to be freed by mem_free and aligned to FRT_ALIGNMENT; NULL when there is
 * none. A file of the name that is none is removed. */
void *cubin_cache_get(const CubinCache *cache, const CubinKey *key, size_t *n_bytes);

/* Keeps it, and removes the files that have not been used for the longest time while all together
 * are too large. Whether it is kept. */
bool cubin_cache_put(const CubinCache *cache, const CubinKey *key, const void *cubin,
                     size_t n_bytes);

/* Removes what turned out to be no use. */
void cubin_cache_drop(const CubinCache *cache, const CubinKey *key);

#endif
