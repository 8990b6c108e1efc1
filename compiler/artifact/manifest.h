/* Writing the artifact's manifest (docs/MANIFEST.md) from plans. Lists are in the plans' order: an
 * artifact's bytes depend on nothing else. Temps are called .t0, .t1, ...: no name of the language
 * begins with a point. */
#ifndef FUSEC_ARTIFACT_MANIFEST_H
#define FUSEC_ARTIFACT_MANIFEST_H

#include "base/diag.h"
#include "machine/target.h"
#include "plan/plan.h"

typedef struct ManifestInput {
    const Module *module;
    const Plan *const *plans; /* one per graph of the module, in order; scheduled and placed */
    const Target *target;
    const char *numerics; /* "strict" or "fast" */
    bool rewrites;        /* whether arithmetic might be rewritten */
    const char *compiler; /* version */
} ManifestInput;

/* The manifest's lines, checksum zero; NULL after a report to `diags` when a bound of the format
 * is passed. */
const char *manifest_text(Arena *arena, const ManifestInput *input, Diags *diags);

/* Finds the manifest in finished artifact bytes and fills in the checksum, a CRC-32C of all of
 * them. False when there is none, or more than one. */
bool manifest_seal(char *artifact, size_t n_bytes);

#endif
