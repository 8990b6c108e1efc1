/* See rt_predicate.h. */
#include "rt_predicate.h"

#include "manifest/manifest.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct RtManifest {
    Manifest manifest;
};

RtManifest *rt_manifest_read(const char *text) {
    RtManifest *rt = calloc(1, sizeof *rt);
    frt_error error = FRT_ERROR_INIT;
    cr_assert(rt && !manifest_read(text, strlen(text), &rt->manifest, &error), "%s\n%s",
              error.message, text);
    return rt;
}

void rt_manifest_free(RtManifest *rt) {
    manifest_free(&rt->manifest);
    free(rt);
}

typedef struct Values {
    int64_t values[FRT_MAX_DIMS];
    bool known[FRT_MAX_DIMS];
} Values;

static Values values_of(const RtManifest *rt, const int64_t *dims) {
    Values v = {.known = {false}};
    for (uint32_t i = 0; i < rt->manifest.n_given_dims; i++) {
        v.values[i] = dims[i];
        v.known[i] = true;
    }
    return v;
}

bool rt_variant_holds(const RtManifest *rt, uint32_t variant, const int64_t *dims,
                      void *const *args) {
    Values v = values_of(rt, dims);
    cr_assert(variant < rt->manifest.n_variants);
    return predicate_holds(&rt->manifest, rt->manifest.variants[variant].when, UINT32_MAX, args,
                           (DimValues){v.values, v.known});
}

uint32_t rt_n_pitches(const RtManifest *rt) {
    return rt->manifest.n_pitches;
}

void rt_pitch(const RtManifest *rt, uint32_t i, void *address, const int64_t *dims, int64_t *pitch,
              int64_t *width) {
    Values v = values_of(rt, dims);
    const Pitch *of = &rt->manifest.pitches[i];
    pitch_resolve(&rt->manifest, of, address, v.values, v.known);
    cr_assert(v.known[of->pitch] && v.known[of->width]);
    *pitch = v.values[of->pitch];
    *width = v.values[of->width];
}
