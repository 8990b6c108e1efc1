/* Error reporting: one call formats the caller's frt_error and returns the status. */
#ifndef FRT_ERROR_H
#define FRT_ERROR_H

#include "host/port.h"

#include <fusert.h>

/* Write `err` (which may be NULL) and return `status`. */
frt_status frt_fail(frt_error *err, frt_status status, const char *format, ...) FRT_PRINTF(3, 4);

frt_status frt_fail_memory(frt_error *err, size_t n_bytes);

#endif
