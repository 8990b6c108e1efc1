/* Cubins that the driver made of PTX, on disk. There is one file per cubin. Its name is the key: a
 * hash of the PTX and of everything else that the cubin depends on. A file is written under a
 * temporary name and then renamed. A reader trusts a file only if its header, key, length and
 * checksum are right. So any number of processes may share a folder, and foreign files in it do no
 * harm.
 *
 * No function here reports an error: an unreadable file counts as missing, and an unwritable one is
 * not kept. */
#ifndef FRT_CUBIN_CACHE_H
#define FRT_CUBIN_CACHE_H

#include "host/sha256.h"

#include <fusert.h>

enum { CUBIN_CACHE_MAX_PATH = 1024, CUBIN_CACHE_BYTES = 256 << 20 };

typedef struct CubinCache {
    bool is_on;
    size_t max_bytes; /* limit of all files together */
    char folder[CUBIN_CACHE_MAX_PATH];
} CubinCache;

typedef struct CubinKey {
    uint8_t bytes[SHA256_BYTES];
} CubinKey;

/* Finds the cache folder from the options and the environment. Touches no file. */
void cubin_cache_open(CubinCache *cache, const frt_program_options *options);

/* `made_by` names the driver, device and options, on which the cubin depends besides the PTX. */
CubinKey cubin_cache_key(const char *made_by, const void *ptx, size_t n_ptx);

/* The cubin of this key, aligned to FRT_ALIGNMENT; free it by mem_free. NULL when there is none. A
 * damaged file of this name is removed. */
void *cubin_cache_get(const CubinCache *cache, const CubinKey *key, size_t *n_bytes);

/* Writes the cubin to the cache and removes the least recently used files while all files together
 * exceed the limit. False: it was not written. */
bool cubin_cache_put(const CubinCache *cache, const CubinKey *key, const void *cubin,
                     size_t n_bytes);

/* Removes a cubin that the driver refused. */
void cubin_cache_drop(const CubinCache *cache, const CubinKey *key);

#endif
