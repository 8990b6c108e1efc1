/* Programs that a Criterion test compiles. A failed compilation fails the test. */
#ifndef FUSEC_TESTS_COMPILED_H
#define FUSEC_TESTS_COMPILED_H

#include "lib/compile.h"
#include "lib/ptx.h"
#include "lib/rig.h"

/* Compiles fused, or in the given mode. The caller frees the result with compile_free. */
Compiled compiled_new(const char *source, TargetId target);
Compiled compiled_as(const char *source, TargetId target, CompileMode mode);
/* Assembles the PTX for the program's target, whatever `options` say. False if there is no
 * assembler. */
bool compiled_assemble(const Compiled *compiled, PtxOptions options, PtxReport *report);
/* Whether no function uses local memory; true if there is no assembler. */
bool compiled_is_in_registers(const Compiled *compiled);
/* The text of a kernel's variant. */
const char *compiled_function(const Compiled *compiled, const Kernel *kernel, uint32_t variant);

/* Opens a graph that has no dims, with its tensors placed. The caller closes the rig. */
void compiled_open(const Compiled *compiled, Rig *rig, const char *graph);
/* Sets all elements of an input or param: `n_bytes` are as many as it has. */
void compiled_set(Rig *rig, const char *name, const void *elements, size_t n_bytes);
/* Fails the test where an element of an output is not the number, rounded to the dtype; a NaN is
 * equal to a NaN. `want` has as many numbers as the output. */
void compiled_expect_numbers(const Rig *rig, const char *name, Dtype dtype, const double *want);

#endif
