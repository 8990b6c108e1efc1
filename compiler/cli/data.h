/* Contents of inputs and params that no file gives. They depend on kind, seed and name alone, so
 * that programs with equal inputs get equal data. */
#ifndef FUSEC_CLI_DATA_H
#define FUSEC_CLI_DATA_H

#include "ir/dtype.h"

#include <stddef.h>

typedef enum {
#define DATA(sym, name, doc) DATA_##sym,
#include "cli/data.def"
    DATA_COUNT
} DataKind;

typedef struct DataInfo {
    const char *name, *doc;
} DataInfo;
const DataInfo *data_info(DataKind kind);

/* Fills `n_bytes`, a multiple of the dtype's size, for the tensor `name`. */
void data_fill(DataKind kind, uint64_t seed, const char *name, Dtype dtype, uint8_t *bytes,
               size_t n_bytes);

#endif
