/* What the files of `fusec verify` share. */
#ifndef FUSEC_CLI_VERIFY_H
#define FUSEC_CLI_VERIFY_H

#include "cli/exec.h"
#include "verify/probe.h"
#include "verify/verify.h"
#include "verify/verify_fast.h"
#include "verify/verify_rewrite.h"

/* A product whose arithmetic is rewritten. */
typedef struct VerifyProduct {
    uint32_t graph;
    Rewrite rewrite;
    NodeId again; /* in `given`: its own node, whose place the input has taken */
    /* Where it is stored by `tapped`. */
    bool has_tap;
    Probe tap;
    uint32_t n; /* of the graph's probes */
    const ScalarTab *scalars;
    Trace trace;
} VerifyProduct;

typedef struct Verification {
    Cli *cli;
    const char *text;
    size_t n_bytes;
    const Target *target;
    /* All graphs: fused, unfused, and unfused with every value as an output. */
    Driver fused, unfused, probed;
    /* Where the fused one is rewritten: with its rewritten products as outputs too; and unfused
     * with these as inputs, and every value as an output. */
    Driver tapped, given;
    Driver elsewhere; /* on a CPU: plans for a GPU, whose rewrites are evaluated here */
    Vec(VerifyProduct) products;
    uint32_t n_tapped;       /* plans of `tapped` that have got their probes */
    Vec(const Plan *) plans; /* of the fused one, as they were before layout and schedule */
    uint32_t graph;          /* index */
    int64_t size;            /* wanted for dims that nothing fixes */
    uint32_t n_chosen;       /* how many those were */
    DataKind data;
    bool is_judged; /* by the reference: all but the largest size with all but the first inputs */
    VerifyCounts counts, fast_counts;
    RewriteCounts rewritten, elsewhere_counts;
    uint32_t n_runs;
} Verification;

/* The programs of one graph, at one size. */
typedef struct Trio {
    Verification *v;
    Arena *arena; /* of this size */
    Cli cli;      /* with that arena */
    Exec fused, unfused, probed, tapped, given;
} Trio;

/* What node `id` is called as an output; no name of the language begins with a point. */
Str verify_probe_name(Arena *arena, NodeId id);
/* Compiles the driver that is one of the verification's: `user`. */
fusec_status verify_build(Driver *driver, void *user);
fusec_status verify_start(Trio *t, Exec *exec, const Driver *driver);
fusec_status verify_run(const Trio *t, Exec *exec);
/* Per node the elements that a program whose every value is an output gave it. */
const uint8_t *const *verify_node_bytes(const Trio *t, const Graph *graph, Exec *exec);
/* The first output of `a` that differs from that of `b`, to the bit; NULL: none. */
const ExecTensor *verify_difference(Exec *a, Exec *b, const ExecTensor **other);
/* Says where an output differs; `plan` is of the program that has `actual`. */
void verify_describe_output(const Plan *plan, const ExecTensor *actual, const ExecTensor *expected,
                            const char *names, Text *what);
/* Prints what is wrong, and how to see it again. */
fusec_status verify_mismatch(const Trio *t, const char *what);

/* Rewritten arithmetic: verify_rewrite.c. */

/* Whether the graph at hand has any. */
bool verify_is_rewritten(const Verification *v);
/* Compiles what is needed for it; `options` are those of the other programs. */
fusec_status verify_compile_rewritten(Verification *v, const DriverOptions *options);
/* Makes inputs of the rewritten products of all graphs of `given`. */
void verify_give_products(Verification *v);
fusec_status verify_start_rewritten(Trio *t);
/* With what the fused, rewritten program has just made: each product within its bound, all else the
 * bits of the unfused program that goes on from these products. */
fusec_status verify_rewritten(Trio *t);
/* What a GPU's plan has rewritten, evaluated on the host on what the CPU made. `bytes` per node. */
fusec_status verify_elsewhere(Trio *t, const uint8_t *const *bytes);
void verify_print_rewritten(const Verification *v);

#endif
