/* Compiles test programs in memory, through the driver that the program and the library use, and
 * keeps the graphs beside the artifact. */
#ifndef FUSEC_TESTS_COMPILE_H
#define FUSEC_TESTS_COMPILE_H

#include "driver/driver.h"

typedef enum {
    COMPILE_FUSED,
    COMPILE_UNFUSED, /* one kernel per op */
    COMPILE_EXPOSED  /* unfused, and every node is an output (check_expose_nodes) */
} CompileMode;

typedef struct Compiled {
    Driver driver;        /* owns everything here */
    const Module *module; /* NULL when the source is wrong */
    const Plan *plan;     /* of the first graph; NULL when it failed */
    const char *bytes;    /* the artifact: PTX for a GPU, else an object */
    size_t n_bytes;
    const char *messages; /* of a failure: diagnostics, or what broke */
} Compiled;

/* Changes the plans of everything that is compiled from here on; for tests of the tests. */
void compile_with(DriverHook hook);

/* --numerics=fast from here on. */
void compile_with_fast_numerics(void);

/* False on any failure; to be freed in both cases. */
bool compile_source(Compiled *compiled, const char *source, const Target *target, CompileMode mode);
void compile_free(Compiled *compiled);

/* The targets of a device class that this machine's CPU can run; any GPU target counts. */
bool compile_target_runs(const Target *target);

#endif
