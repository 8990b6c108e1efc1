/* See read.h. */
#define _DEFAULT_SOURCE
#include "host/read.h"

#include <errno.h>
#include <unistd.h>

int64_t read_at(int file, void *to, size_t n_bytes, uint64_t at) {
    size_t n = 0;
    while (n < n_bytes) {
        ssize_t got = pread(file, (char *)to + n, n_bytes - n, (off_t)(at + n));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        n += (size_t)got;
    }
    return (int64_t)n;
}
