/* Declarations that the files of `fusec verify` share. */
#ifndef FUSEC_CLI_VERIFY_H
#define FUSEC_CLI_VERIFY_H

#include "cli/exec.h"
#include "verify/probe.h"
#include "verify/verify.h"
#include "verify/verify_fast.h"
#include "verify/verify_rewrite.h"

#include <time.h>

/* A GEMM whose arithmetic is rewritten. */
typedef struct VerifyGemm {
    uint32_t graph;
    Rewrite rewrite;
    NodeId again; /* in `given`: the GEMM's node, which an input replaces for its users */
    /* The probe that stores its result in `gemms_probed`. */
    bool has_probe;
    Probe probe;
    uint32_t n; /* index among the graph's probes */
    const ScalarTab *scalars;
    Trace trace;
} VerifyGemm;

typedef struct Verification {
    Cli *cli;
    const char *text;
    size_t n_bytes;
    const Target *target;
    /* All graphs: fused, unfused, and unfused with every value as an output. */
    Driver fused, unfused, probed;
    /* For rewritten programs: fused with the rewritten GEMMs as outputs too; and unfused with these
     * as inputs, and every value as an output. */
    Driver gemms_probed, given;
    Driver elsewhere; /* on a CPU: plans for a GPU, whose rewrites are evaluated on the host */
    Vec(VerifyGemm) gemms;
    uint32_t n_gemms_probed; /* number of plans of `gemms_probed` with probes added */
    Vec(const Plan *) plans; /* of the fused program, before layout and schedule */
    uint32_t graph;          /* index in the module */
    int64_t size;            /* wanted for dims that nothing fixes */
    uint32_t n_chosen;       /* number of such dims */
    DataKind data;
    bool is_judged; /* by the interpreter: always, except the largest size with later kinds of
                     * inputs */
    VerifyCounts counts, fast_counts;
    RewriteCounts rewritten, elsewhere_counts;
    uint32_t n_runs;
    struct timespec begin; /* of the command */
} Verification;

/* The programs of one graph at one size. */
typedef struct Trio {
    Verification *v;
    Arena *arena; /* memory of this size */
    Cli cli;      /* with that arena */
    Exec fused, unfused, probed, gemms_probed, given;
} Trio;

/* Prints the next step to stderr: to a terminal, with --verbose, or if the verification takes
 * long. */
STR_PRINTF(2, 3) void verify_say(const Verification *v, const char *format, ...);
/* `placed` of a DriverHook: calls that of the program. `user` is the verification. */
void verify_pass_on(void *user, Arena *arena, Plan *plan, bool is_fused);
/* Compiles a driver of the verification, which is `user`. */
fusec_status verify_build(Driver *driver, void *user);
fusec_status verify_start(Trio *t, Exec *exec, const Driver *driver);
fusec_status verify_run(const Trio *t, Exec *exec);
/* Per node its elements, from a program with every value as an output. */
const uint8_t *const *verify_node_bytes(const Trio *t, const Graph *graph, Exec *exec);
/* The first output of `a` that differs in a bit from that of `b`; NULL: none. */
const ExecTensor *verify_difference(Exec *a, Exec *b, const ExecTensor **other);
/* Describes where an output differs. `plan` is that of the program with `actual`. */
void verify_describe_output(const Plan *plan, const ExecTensor *actual, const ExecTensor *expected,
                            const char *names, Text *what);
/* Prints the mismatch and a command that repeats it. */
fusec_status verify_mismatch(const Trio *t, const char *what);

/* Rewritten arithmetic: verify_rewrite.c. */

/* Whether the current graph has rewritten arithmetic. */
bool verify_is_rewritten(const Verification *v);
/* Compiles the additional programs; `options` are those of the other programs. */
fusec_status verify_compile_rewritten(Verification *v, const DriverOptions *options);
/* Makes the rewritten GEMMs inputs, in all graphs of `given`. */
void verify_give_gemms(Verification *v);
fusec_status verify_start_rewritten(Trio *t);
/* Checks the last run of the fused, rewritten program: each rewritten GEMM within its bound, and
 * all other values equal in bits to the unfused program that takes these GEMMs as inputs. */
fusec_status verify_rewritten(Trio *t);
/* Evaluates the rewrites of the GPU's plan on the host, on the values of the CPU's run. `bytes` per
 * node. */
fusec_status verify_elsewhere(Trio *t, const uint8_t *const *bytes);
void verify_print_rewritten(const Verification *v);

#endif
