/* Programs that a Criterion test compiles: one that does not compile fails it. */
#ifndef FUSEC_TESTS_COMPILED_H
#define FUSEC_TESTS_COMPILED_H

#include "lib/compile.h"
#include "lib/ptx.h"

/* Fused, or in that mode. To be freed with compile_free. */
Compiled compiled_new(const char *source, TargetId target);
Compiled compiled_as(const char *source, TargetId target, CompileMode mode);
/* Of a GPU: what the assembler says of everything, for the program's target whatever the options
 * say; false where there is none. */
bool compiled_assemble(const Compiled *compiled, PtxOptions options, PtxReport *report);
/* Whether all functions are, or there is no assembler to ask. */
bool compiled_is_in_registers(const Compiled *compiled);
/* The text of a kernel's variant. */
const char *compiled_function(const Compiled *compiled, const Kernel *kernel, uint32_t variant);

#endif
