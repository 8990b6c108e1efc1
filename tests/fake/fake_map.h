/* Tensor maps where there is no driver to encode them. */
#ifndef FAKE_MAP_H
#define FAKE_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* What an encoded tensor map holds here: 128 bytes as in the driver. */
typedef struct FakeMap {
    void *data;
    int32_t dtype, swizzle;
    uint32_t rank;
    uint32_t box[5];
    uint64_t sizes[5], stride_bytes[5]; /* stride_bytes[0] is 0 */
} FakeMap;

/* From what cuTensorMapEncodeTiled is given, but for `swizzle`. False: the driver would refuse it.
 */
bool fake_map_make(FakeMap *map, int dtype, uint32_t rank, void *data, const uint64_t *sizes,
                   const uint64_t *stride_bytes, const uint32_t *box,
                   const uint32_t *element_strides);

#endif
