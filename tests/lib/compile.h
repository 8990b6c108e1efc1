/* Compiles test programs in memory, through the driver of the program and the library, and keeps
 * the graphs with the artifact. */
#ifndef FUSEC_TESTS_COMPILE_H
#define FUSEC_TESTS_COMPILE_H

#include "driver/driver.h"

typedef enum {
    COMPILE_FUSED,
    COMPILE_UNFUSED, /* one kernel per op */
    COMPILE_EXPOSED  /* unfused, and every node is an output (check_expose_nodes) */
} CompileMode;

typedef struct Compiled {
    Driver driver;        /* owns all memory of this struct */
    const Module *module; /* NULL when the source has errors */
    const Plan *plan;     /* of the first graph; NULL after a failure */
    const char *bytes;    /* the artifact: PTX for a GPU, else an object */
    size_t n_bytes;
    const char *messages; /* of a failure: diagnostics or an internal error */
} Compiled;

/* Installs a hook that changes the plans of all later compilations; for tests of the tests. */
void compile_with(DriverHook hook);

/* Compiles with --numerics=fast from here on. */
void compile_with_fast_numerics(void);

/* Whether all later compilations have --rewrite. */
void compile_with_rewrites(bool rewrites);

/* False on any failure. The caller frees `compiled` in any case. */
bool compile_source(Compiled *compiled, const char *source, const Target *target, CompileMode mode);
void compile_free(Compiled *compiled);

/* Whether this machine can run the target's code; true for every GPU target. */
bool compile_target_runs(const Target *target);

#endif
