/* `fusec verify` in this process, on programs into which a hook plants faults: does it name the
 * fault? Needs the program's own objects (cli*.o) beside the test library. */
#ifndef FUSEC_TESTS_PROVE_H
#define FUSEC_TESTS_PROVE_H

#include "lib/faults.h"

typedef struct Proof {
    fusec_status status;
    char said[1 << 15]; /* stdout and stderr together */
} Proof;

/* Runs a command of the program on a source. on_fake: CUDA is the fake driver (fake/fake_cuda.h).
 * `options` are further arguments, at most eight, ended by NULL. */
void prove_command(Proof *proof, const char *command, const char *source, bool on_fake,
                   const char *const *options);
/* Runs verify with a hook, on real devices. */
void prove_verify(Proof *proof, const char *source, DriverHook hook, const char *const *options);

/* The op that verify names and its line: the first wrong value, or else the first one out of its
 * bound. NULL and 0: none. */
typedef struct ProofName {
    const char *op; /* n_bytes long */
    int n_bytes;
    uint32_t line;
} ProofName;
ProofName prove_named(const Proof *proof);

/* The option of verify that sets the rows of the fault's program; NULL if they are fixed. A CPU
 * shows at once that a kernel overwrites a value too early. A GPU shows it only if not all blocks
 * run at the same time, as with 4 million elements in 4096 blocks. */
const char *prove_rows(FaultId id, const char *target);
/* Whether verify finds a planted fault and names its op and line, and nothing before them.
 * Otherwise `report` says what is wrong. */
bool prove_fault(Proof *proof, FaultId id, const char *target, Text *report);

/* prove_fault for a fault in a random op of a random program. The fault may change no output, or no
 * kernel may compute such an op. */
typedef enum { RANDOM_NAMED, RANDOM_UNSEEN, RANDOM_ABSENT, RANDOM_MISSED } RandomProof;
RandomProof prove_random(Proof *proof, uint64_t seed, const char *target, Text *report);

#endif
