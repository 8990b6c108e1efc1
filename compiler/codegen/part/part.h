/* Parts: functions that a kernel's code calls, so that equal code of several kernels exists once.
 *
 * A part is emitted like any code, and then compared with the parts before, by its key
 * (part_key.h): of equal parts of one artifact the first one stays. What differs between kernels
 * and need not be a constant, such as pointers and positions, is therefore handed to the part.
 * Parts of one artifact may lie in other units than their callers. */
#ifndef FUSEC_CODEGEN_PART_PART_H
#define FUSEC_CODEGEN_PART_PART_H

#include "codegen/scalar/point.h"

typedef struct PartTab PartTab;

PartTab *parttab_new(Arena *arena);

/* A part under construction. */
typedef struct Part {
    Lower *lower, outer; /* outer: the Lower as the caller has it */
    Val function;
    LLVMBasicBlockRef from, body; /* from: the caller's block */
    Val **slots, *values;         /* values: what the slots have in the caller */
    uint32_t n;
} Part;

/* Begins a part. Each slot that is not NULL holds a value of the caller, and holds the part's
 * parameter from here on. A slot stands for one value. Dims are computed anew in the part, if the
 * Lower's symbols are among the slots. */
Part part_begin(Lower *lower, Val **slots, uint32_t n);
/* Begins a part that takes all that the Lower's kernel takes: pointers, dims, constants and the
 * range of work units. */
Part part_begin_kernel(Lower *lower);
/* Ends it: the slots get back their values, and the caller calls it. */
void part_end(Part *part);

#endif
