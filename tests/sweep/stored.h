/* Stored cases: programs with inputs, and outputs that another implementation computed. A file is
 * records of protobuf's wire format, field 1 of the file, with the fields
 *
 *   1 name, 2 program, 3 input, 4 constant, 5 output, 6 relative tolerance, 7 absolute tolerance
 *
 * where a tensor has the fields 1 name and 2 contents, a .npy file. Python writes them: see
 * tests/onnx/node_tests.py and tests/sweep/sweep.py. */
#ifndef FUSEC_TESTS_STORED_H
#define FUSEC_TESTS_STORED_H

#include "interp/npy.h"
#include "onnx/file/wire.h"

enum { STORED_MAX_TENSORS = 128 };

typedef struct StoredTensor {
    const char *name;
    Bytes file;
    NpyArray array;
} StoredTensor;

typedef struct StoredTensors {
    StoredTensor data[STORED_MAX_TENSORS];
    uint32_t n;
} StoredTensors;

typedef struct StoredCase {
    const char *name;
    Bytes program;
    StoredTensors inputs, constants, outputs;
    double relative, absolute; /* |got - wanted| may be absolute + relative |wanted| */
} StoredCase;

/* The next case of a file; false at its end. A bad record fails the test. */
bool stored_next(Arena *arena, Bytes *file, StoredCase *stored);

/* Compiles `source`, a program of one graph whose outputs are those of the case, for the CPU and
 * runs it. What is wrong, or NULL. */
const char *stored_try(Arena *arena, const StoredCase *stored, const char *source);

#endif
