/* Tensor maps without a driver to encode them. */
#ifndef FAKE_MAP_H
#define FAKE_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* The contents of an encoded tensor map here: 128 bytes, as in the driver. */
typedef struct FakeMap {
    void *data;
    int16_t dtype, swizzle;
    uint16_t rank;
    bool is_im2col;
    uint16_t box[5];            /* im2col: channels first and pixels last */
    int16_t lower[3], upper[3]; /* im2col: of the spatial axes */
    uint8_t steps[5];
    uint64_t sizes[5], stride_bytes[5]; /* stride_bytes[0] is 0 */
} FakeMap;
_Static_assert(sizeof(FakeMap) <= 128, "as in the driver");

/* Makes a map from the arguments of cuTensorMapEncodeTiled, without `swizzle`. False: the driver
 * would reject it. */
bool fake_map_make(FakeMap *map, int dtype, uint32_t rank, void *data, const uint64_t *sizes,
                   const uint64_t *stride_bytes, const uint32_t *box,
                   const uint32_t *element_strides);

/* Makes a map from the arguments of cuTensorMapEncodeIm2col. */
typedef struct FakeWindows {
    const int *lower, *upper;
    uint32_t n_channels, n_pixels;
} FakeWindows;
bool fake_map_make_im2col(FakeMap *map, int dtype, uint32_t rank, void *data, const uint64_t *sizes,
                          const uint64_t *stride_bytes, const FakeWindows *windows,
                          const uint32_t *element_strides);

#endif
