/* Names and texts of statuses and dtypes, and the filling of frt_error. */
#include "host/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *frt_version(void) {
#define TEXT(x) #x
#define DOTTED(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)
    return DOTTED(FRT_VERSION_MAJOR, FRT_VERSION_MINOR, FRT_VERSION_PATCH);
#undef DOTTED
#undef TEXT
}

typedef struct StatusRow {
    const char *name;
    const char *text;
} StatusRow;

static const StatusRow statuses[] = {
#define X(id, number, name, text) [number] = {name, text},
#include <frt_status.def>
#undef X
};

static const StatusRow *status_row(frt_status status) {
    size_t i = (size_t)status;
    return i < sizeof statuses / sizeof statuses[0] ? &statuses[i] : NULL;
}

const char *frt_status_name(frt_status status) {
    const StatusRow *row = status_row(status);
    return row ? row->name : "unknown";
}

const char *frt_status_text(frt_status status) {
    const StatusRow *row = status_row(status);
    return row ? row->text : "unknown status";
}

typedef struct DtypeRow {
    const char *name;
    size_t n_bytes;
} DtypeRow;

static const DtypeRow dtypes[FRT_DTYPE_COUNT] = {
#define X(symbol, number, name, safetensors, bytes, map) [number] = {name, bytes},
#include <frt_dtype.def>
#undef X
};

#define X(...) +1
_Static_assert(0
#include <frt_dtype.def>
                   == FRT_DTYPE_COUNT,
               "FRT_DTYPE_COUNT is the number of rows");
#undef X

const char *frt_dtype_name(frt_dtype dtype) {
    return (size_t)dtype < FRT_DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

size_t frt_dtype_bytes(frt_dtype dtype) {
    return (size_t)dtype < FRT_DTYPE_COUNT ? dtypes[dtype].n_bytes : 0;
}

frt_status frt_fail(frt_error *err, frt_status status, const char *format, ...) {
    if (!err) {
        return status;
    }
    err->status = status;
    err->cuda = 0;
    size_t n_bytes = sizeof err->message;
    if (err->struct_size > offsetof(frt_error, message) && err->struct_size < sizeof *err) {
        n_bytes = err->struct_size - offsetof(frt_error, message);
    }
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, n_bytes, format, args);
    va_end(args);
    return status;
}

frt_status frt_fail_memory(frt_error *err, size_t n_bytes) {
    return frt_fail(err, FRT_E_OUT_OF_MEMORY, "out of host memory (%zu bytes were wanted)",
                    n_bytes);
}
