/* Properties of PTX, from its text and from NVIDIA's assembler. If a tool is not on PATH, the test
 * prints a line `SKIPPED ..` and counts as skipped. */
#ifndef FUSEC_TESTS_PTX_H
#define FUSEC_TESTS_PTX_H

#include "base/str.h"
#include "base/vec.h"

/* An entry point together with the functions that it calls. */
typedef struct PtxFunction {
    const char *name;
    uint32_t n_registers;                                      /* per thread */
    uint32_t stack_bytes, spill_store_bytes, spill_load_bytes; /* per thread */
    uint32_t shared_bytes;                                     /* per block, static only */
} PtxFunction;

typedef struct PtxReport {
    Vec(PtxFunction) functions; /* in the assembler's order */
    /* Warnings, and remarks that the assembler moved or serialised something. */
    uint32_t n_remarks;
    const char *sass; /* NULL: not asked for, or no disassembler */
} PtxReport;

typedef struct PtxOptions {
    const char *target; /* sm_.. */
    const char *level;  /* optimisation level, "0" to "3"; NULL: the assembler's default */
    bool wants_sass;
} PtxOptions;

/* Assembles the PTX; an error fails the test. False if there is no assembler. */
bool ptx_assemble(Arena *arena, const char *ptx, size_t n_bytes, PtxOptions options,
                  PtxReport *report);
/* Whether there are functions and none of them uses local memory. */
bool ptx_is_in_registers(const PtxReport *report);
/* Parses the output of ptxas -v. Fails the test if it does not mention spills. */
void ptx_read_messages(Arena *arena, const char *messages, PtxReport *report);

/* The text of the entry, from its name to the line of its closing brace. It must exist. */
const char *ptx_function_text(Arena *arena, const char *ptx, const char *symbol);
uint32_t ptx_count(const char *text, const char *what);

#endif
