/* What the runtime says of the predicates of a manifest, for tests of the compiler: both have
 * types of the same names. */
#ifndef RT_PREDICATE_H
#define RT_PREDICATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct RtManifest RtManifest;
/* Stops the test if the runtime cannot read it. */
RtManifest *rt_manifest_read(const char *text);
void rt_manifest_free(RtManifest *rt);

/* Whether the predicate of a variant, counted over all launches, holds for values of the dims that
 * the manifest declares and pointers of the launch's arguments. */
bool rt_variant_holds(const RtManifest *rt, uint32_t variant, const int64_t *dims,
                      void *const *args);
uint32_t rt_n_pitches(const RtManifest *rt);
/* What the pitch and the width of a matrix at `address` are. */
void rt_pitch(const RtManifest *rt, uint32_t i, void *address, const int64_t *dims, int64_t *pitch,
              int64_t *width);

#endif
