/* The runtime's evaluation of a manifest's predicates, for tests of the compiler. It is a header of
 * its own because both sides have types of the same names. */
#ifndef RT_PREDICATE_H
#define RT_PREDICATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct RtManifest RtManifest;
/* Fails the test if the runtime cannot read the text. */
RtManifest *rt_manifest_read(const char *text);
void rt_manifest_free(RtManifest *rt);

/* Whether the predicate of a variant, counted over all launches, holds for values of the manifest's
 * dims and pointers of the launch's arguments. */
bool rt_variant_holds(const RtManifest *rt, uint32_t variant, const int64_t *dims,
                      void *const *args);
uint32_t rt_n_pitches(const RtManifest *rt);
/* The pitch and the width of a matrix at `address`. */
void rt_pitch(const RtManifest *rt, uint32_t i, void *address, const int64_t *dims, int64_t *pitch,
              int64_t *width);

#endif
