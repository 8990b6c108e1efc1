/* `fusec verify` in this process, on programs that a hook compiles wrong, and whether it names the
 * mistake. Needs the program's own objects (cli*.o) beside the test library. */
#ifndef FUSEC_TESTS_PROVE_H
#define FUSEC_TESTS_PROVE_H

#include "lib/faults.h"

typedef struct Proof {
    fusec_status status;
    char said[1 << 15]; /* on stdout and stderr */
} Proof;

/* A command of the program on a source, CUDA on the fake driver (fake/fake_cuda.h) if `on_fake`.
 * `options` are further arguments, at most eight, ended by NULL. */
void prove_command(Proof *proof, const char *command, const char *source, bool on_fake,
                   const char *const *options);
/* The same with verify and a hook, on real devices. */
void prove_verify(Proof *proof, const char *source, DriverHook hook, const char *const *options);

/* The op that verify named, and its line: what is wrong first, or else what is out of its bound.
 * NULL and 0: none. */
typedef struct ProofName {
    const char *op; /* of so many bytes */
    int n_bytes;
    uint32_t line;
} ProofName;
ProofName prove_named(const Proof *proof);

/* The option of verify that sets the rows of a mistake's program, NULL if they are fixed. What a
 * kernel overwrites too early is read wrong at once on a CPU; on a GPU where blocks do not all have
 * a place at the same time, as 4 million elements in 4096 of them. */
const char *prove_rows(FaultId id, const char *target);
/* Whether a planted mistake is found and its op and line named, and nothing else before them; what
 * is wrong goes to `report`. */
bool prove_fault(Proof *proof, FaultId id, const char *target, Text *report);

/* The same for a mistake in a random op of a random program: it may change no output, or no kernel
 * may compute such an op. */
typedef enum { RANDOM_NAMED, RANDOM_UNSEEN, RANDOM_ABSENT, RANDOM_MISSED } RandomProof;
RandomProof prove_random(Proof *proof, uint64_t seed, const char *target, Text *report);

#endif
