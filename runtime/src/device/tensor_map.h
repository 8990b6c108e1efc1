/* Tensor maps with numbers: the address of a launch argument and its box for the copy engine. */
#ifndef FRT_TENSOR_MAP_H
#define FRT_TENSOR_MAP_H

#include "manifest/manifest.h"

/* Everything that a device needs to encode a map. Axes are innermost first; stride_bytes[0] is not
 * used. */
typedef struct MapSpec {
    void *data;
    frt_dtype dtype;
    bool is_tf32;
    uint32_t swizzle; /* bytes */
    uint32_t rank;
    bool is_im2col;
    uint64_t sizes[FRT_MAX_MAP_RANK];
    uint64_t stride_bytes[FRT_MAX_MAP_RANK];
    uint32_t box[FRT_MAX_MAP_RANK];
    uint32_t steps[FRT_MAX_MAP_RANK];                     /* 1 except along spatial axes of
                                                           * im2col */
    int lower[FRT_MAX_MAP_RANK], upper[FRT_MAX_MAP_RANK]; /* im2col: from the second axis on */
} MapSpec;

/* Evaluates the map over `data` for these dims. False: the copy engine cannot take it, because an
 * address or stride is no multiple of 16 bytes, an axis has no elements, or a number is out of
 * range. */
bool map_make(const Manifest *m, const Map *map, frt_dtype dtype, void *data, DimValues dims,
              MapSpec *spec);

/* Whether both have the same encoding. */
bool map_is_same(const MapSpec *a, const MapSpec *b);

#endif
