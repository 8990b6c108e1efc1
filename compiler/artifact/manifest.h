/* Writes the artifact's manifest (docs/MANIFEST.md) from plans. Lists are in the order of the
 * plans, so an artifact's bytes depend on the plans alone. Temps are called .t0, .t1, ...: no name
 * of the language begins with a period. */
#ifndef FUSEC_ARTIFACT_MANIFEST_H
#define FUSEC_ARTIFACT_MANIFEST_H

#include "base/diag.h"
#include "machine/target.h"
#include "ir/sequence.h"
#include "plan/plan.h"

typedef struct ManifestInput {
    const Module *module;
    /* Per graph of the module, if it has loops and is cut, else NULL; NULL: none is. */
    Sequence *const *sequences;
    const Plan *const *plans; /* one per graph of the module, or per graph that it is cut into, in
                               * order; each is scheduled and placed */
    const Target *target;
    const char *numerics; /* "strict" or "fast" */
    bool rewrites;        /* whether the graphs were rewritten (--rewrite) */
    const char *compiler; /* version of the compiler */
} ManifestInput;

/* The lines of the manifest with a zero checksum. NULL, after a report to `diags`, when a bound of
 * the format is exceeded. */
const char *manifest_text(Arena *arena, const ManifestInput *input, Diags *diags);

/* Whether the plan has no more tensors than a manifest can hold; later passes add some. False,
 * after a report to `diags`, if it has. */
bool manifest_may_hold(const Graph *graph, uint32_t n_buffers, Diags *diags);

/* Finds the manifest in finished artifact bytes, and fills in its checksum, a CRC-32C of all bytes.
 * False when there is no manifest or more than one. */
bool manifest_seal(char *artifact, size_t n_bytes);

#endif
