#include "fake/fake_map.h"

bool fake_map_make(FakeMap *map, int dtype, uint32_t rank, void *data, const uint64_t *sizes,
                   const uint64_t *stride_bytes, const uint32_t *box,
                   const uint32_t *element_strides) {
    *map = (FakeMap){.data = data, .dtype = dtype, .rank = rank};
    bool is_good = (uintptr_t)data % 16 == 0 && rank >= 1 && rank <= 5;
    for (uint32_t i = 0; is_good && i < rank; i++) {
        map->sizes[i] = sizes[i];
        map->box[i] = box[i];
        if (i > 0) map->stride_bytes[i] = stride_bytes[i - 1];
        is_good = sizes[i] > 0 && map->stride_bytes[i] % 16 == 0 && box[i] >= 1 && box[i] <= 256 &&
                  element_strides[i] == 1;
    }
    return is_good;
}
