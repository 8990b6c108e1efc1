/* What PTX is, by its text and by the word of NVIDIA's assembler. Where a tool is not on PATH, the
 * test says so in a line `SKIPPED ..` and is counted as skipped. */
#ifndef FUSEC_TESTS_PTX_H
#define FUSEC_TESTS_PTX_H

#include "base/str.h"
#include "base/vec.h"

/* An entry, with what it calls. */
typedef struct PtxFunction {
    const char *name;
    uint32_t n_registers;                                      /* per thread */
    uint32_t stack_bytes, spill_store_bytes, spill_load_bytes; /* per thread */
    uint32_t shared_bytes; /* per block, without what is dynamic */
} PtxFunction;

typedef struct PtxReport {
    Vec(PtxFunction) functions; /* in the assembler's order */
    /* Warnings, and what the assembler says it moved or serialised. */
    uint32_t n_remarks;
    const char *sass; /* NULL: not wanted, or no disassembler */
} PtxReport;

typedef struct PtxOptions {
    const char *target; /* sm_.. */
    const char *level;  /* of optimisation, "0" to "3"; NULL: the assembler's choice */
    bool wants_sass;
} PtxOptions;

/* Assembles, which fails the test where it is refused. False where there is no assembler. */
bool ptx_assemble(Arena *arena, const char *ptx, size_t n_bytes, PtxOptions options,
                  PtxReport *report);
/* Whether there are functions, and none has anything in local memory. */
bool ptx_is_in_registers(const PtxReport *report);
/* Reads what the assembler says with -v; fails the test where it does not speak of spills. */
void ptx_read_messages(Arena *arena, const char *messages, PtxReport *report);

/* The entry's text, from its name to the line of its closing brace; it must be there. */
const char *ptx_function_text(Arena *arena, const char *ptx, const char *symbol);
uint32_t ptx_count(const char *text, const char *what);

#endif
