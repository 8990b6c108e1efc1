/* See cubin_cache.h. A file is a header of 64 bytes followed by the cubin. */
#include "code/cubin_cache.h"

#include "host/crc32c.h"
#include "host/error.h"
#include "host/mem.h"
#include "host/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".cubin"
#define TEMP_PREFIX "new-"

enum {
    MAX_CUBIN_BYTES = 1 << 30,
    MAX_NAME = 2 * SHA256_BYTES + sizeof SUFFIX,
    MAX_FULL_PATH = CUBIN_CACHE_MAX_PATH + 128,
    STALE_SECONDS = 3600, /* age at which a temporary file has lost its writer */
    MAX_FILES = 4096      /* limit for one pass of eviction */
};

typedef struct Header {
    char magic[16];
    CubinKey key;
    uint64_t n_bytes;
    uint32_t crc; /* CRC-32C of key, n_bytes and cubin */
    uint32_t unused;
} Header;

static const char magic[16] = "fusert-cubin 1\n";

/* The folder. */

static bool set_folder(CubinCache *cache, const char *parent, const char *name) {
    int n = snprintf(cache->folder, sizeof cache->folder, "%s%s", parent, name);
    return n > 0 && (size_t)n < sizeof cache->folder;
}

static bool choose_folder(CubinCache *cache, const char *wanted) {
    const char *named = getenv("FUSERT_CACHE");
    const char *caches = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (named && strcmp(named, "off") == 0) {
        return false;
    }
    if (wanted && *wanted) {
        return set_folder(cache, wanted, "");
    }
    if (named && *named) {
        return set_folder(cache, named, "");
    }
    if (caches && *caches == '/') { /* XDG says to ignore a relative path */
        return set_folder(cache, caches, "/fusert");
    }
    return home && *home == '/' && set_folder(cache, home, "/.cache/fusert");
}

void cubin_cache_open(CubinCache *cache, const frt_program_options *options) {
    *cache =
        (CubinCache){.max_bytes = options->cache_bytes ? options->cache_bytes : CUBIN_CACHE_BYTES};
    cache->is_on = options->cache && choose_folder(cache, options->cache_dir);
}

CubinKey cubin_cache_key(const char *made_by, const void *ptx, size_t n_ptx) {
    CubinKey key;
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, made_by, strlen(made_by) + 1);
    sha256_add(&hash, ptx, n_ptx);
    sha256_end(&hash, key.bytes);
    return key;
}

static void path_of(const CubinCache *cache, const CubinKey *key, char path[MAX_FULL_PATH]) {
    int n = snprintf(path, MAX_FULL_PATH, "%s/", cache->folder);
    for (int i = 0; i < SHA256_BYTES; i++) {
        n += snprintf(path + n, (size_t)(MAX_FULL_PATH - n), "%02x", key->bytes[i]);
    }
    snprintf(path + n, (size_t)(MAX_FULL_PATH - n), SUFFIX);
}

void cubin_cache_drop(const CubinCache *cache, const CubinKey *key) {
    char path[MAX_FULL_PATH];
    path_of(cache, key, path);
    unlink(path);
}

/* Reading. */

static bool read_all(int file, void *bytes, size_t n_bytes, uint64_t at) {
    return read_at(file, bytes, n_bytes, at) == (int64_t)n_bytes;
}

static uint32_t checksum(const Header *header, const void *cubin) {
    uint32_t crc = crc32c_update(0, &header->key, sizeof header->key);
    crc = crc32c_update(crc, &header->n_bytes, sizeof header->n_bytes);
    return crc32c_update(crc, cubin, header->n_bytes);
}

/* A cubin is code. It must belong to the user or root, and no one else may write it. */
static bool is_ours(const struct stat *info) {
    return S_ISREG(info->st_mode) && (info->st_uid == geteuid() || info->st_uid == 0) &&
           (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool is_header(const Header *header, const CubinKey *key, const struct stat *info) {
    return memcmp(header->magic, magic, sizeof magic) == 0 &&
           memcmp(&header->key, key, sizeof *key) == 0 && header->n_bytes > 0 &&
           header->n_bytes <= MAX_CUBIN_BYTES &&
           (uint64_t)info->st_size == sizeof *header + header->n_bytes;
}

static void *read_cubin(int file, const CubinKey *key, const struct stat *info, size_t *n_bytes) {
    Header header;
    if ((size_t)info->st_size < sizeof header || !read_all(file, &header, sizeof header, 0) ||
        !is_header(&header, key, info)) {
        return NULL;
    }
    void *cubin = mem_alloc_aligned(header.n_bytes);
    if (cubin && (!read_all(file, cubin, header.n_bytes, sizeof header) ||
                  checksum(&header, cubin) != header.crc)) {
        mem_free(cubin);
        return NULL;
    }
    *n_bytes = header.n_bytes;
    return cubin;
}

void *cubin_cache_get(const CubinCache *cache, const CubinKey *key, size_t *n_bytes) {
    char path[MAX_FULL_PATH];
    struct stat info;
    path_of(cache, key, path);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
        return NULL;
    }
    bool is_file = fstat(file, &info) == 0 && is_ours(&info);
    void *cubin = is_file ? read_cubin(file, key, &info, n_bytes) : NULL;
    if (cubin) {
        futimens(file, NULL); /* eviction goes by this time stamp */
    } else {
        unlink(path);
    }
    close(file);
    return cubin;
}

/* Writing. */

static void make_folder(const char *folder) {
    char path[CUBIN_CACHE_MAX_PATH];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

static bool write_all(int file, const void *bytes, size_t n_bytes) {
    const char *at = bytes;
    while (n_bytes > 0) {
        ssize_t n = write(file, at, n_bytes);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        at += n > 0 ? n : 0;
        n_bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

typedef struct Entry {
    char name[MAX_NAME];
    struct timespec used;
    size_t n_bytes;
} Entry;

static int by_use(const void *a, const void *b) {
    const Entry *x = a;
    const Entry *y = b;
    if (x->used.tv_sec != y->used.tv_sec) {
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    }
    if (x->used.tv_nsec != y->used.tv_nsec) {
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static bool is_entry(const char *name) {
    size_t n = 2 * SHA256_BYTES;
    return strspn(name, "0123456789abcdef") == n && strcmp(name + n, SUFFIX) == 0;
}

/* Lists the cubins of the folder. Temporary files of dead processes are removed. */
static size_t list(DIR *folder, Entry *entries) {
    size_t n = 0;
    struct stat info;
    for (struct dirent *at; n < MAX_FILES && (at = readdir(folder));) {
        bool is_temp = strncmp(at->d_name, TEMP_PREFIX, sizeof TEMP_PREFIX - 1) == 0;
        if ((!is_temp && !is_entry(at->d_name)) ||
            fstatat(dirfd(folder), at->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (is_temp) {
            if (info.st_mtim.tv_sec + STALE_SECONDS < time(NULL)) {
                unlinkat(dirfd(folder), at->d_name, 0);
            }
            continue;
        }
        entries[n] = (Entry){.used = info.st_mtim, .n_bytes = (size_t)info.st_size};
        memcpy(entries[n++].name, at->d_name, strlen(at->d_name) + 1);
    }
    return n;
}

static void remove_oldest(const CubinCache *cache) {
    Entry *entries = mem_alloc(MAX_FILES, sizeof *entries);
    DIR *folder = entries ? opendir(cache->folder) : NULL;
    if (folder) {
        size_t n = list(folder, entries);
        size_t total = 0;
        qsort(entries, n, sizeof *entries, by_use);
        for (size_t i = 0; i < n; i++) {
            total += entries[i].n_bytes;
        }
        for (size_t i = 0; i < n && (total > cache->max_bytes || n - i == MAX_FILES); i++) {
            unlinkat(dirfd(folder), entries[i].name, 0);
            total -= entries[i].n_bytes;
        }
        closedir(folder);
    }
    mem_free(entries);
}

bool cubin_cache_put(const CubinCache *cache, const CubinKey *key, const void *cubin,
                     size_t n_bytes) {
    char path[MAX_FULL_PATH];
    char temp[MAX_FULL_PATH];
    Header header = {.key = *key, .n_bytes = n_bytes};
    memcpy(header.magic, magic, sizeof magic);
    header.crc = checksum(&header, cubin);
    if (n_bytes == 0 || n_bytes > MAX_CUBIN_BYTES || n_bytes + sizeof header > cache->max_bytes) {
        return false;
    }
    make_folder(cache->folder);
    path_of(cache, key, path);
    snprintf(temp, sizeof temp, "%s/" TEMP_PREFIX "XXXXXX", cache->folder);
    int file = mkstemp(temp);
    if (file < 0) {
        return false;
    }
    bool is_kept = write_all(file, &header, sizeof header) && write_all(file, cubin, n_bytes);
    is_kept = close(file) == 0 && is_kept && rename(temp, path) == 0;
    if (!is_kept) {
        unlink(temp);
    }
    remove_oldest(cache);
    return is_kept;
}
