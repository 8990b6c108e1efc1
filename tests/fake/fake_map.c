#include "fake/fake_map.h"

static bool set_axes(FakeMap *map, const uint64_t *sizes, const uint64_t *stride_bytes,
                     const uint32_t *steps) {
    bool is_good = (uintptr_t)map->data % 16 == 0 && map->rank >= 1 && map->rank <= 5;
    for (uint32_t i = 0; is_good && i < map->rank; i++) {
        map->sizes[i] = sizes[i];
        map->steps[i] = (uint8_t)steps[i];
        if (i > 0) map->stride_bytes[i] = stride_bytes[i - 1];
        is_good = sizes[i] > 0 && map->stride_bytes[i] % 16 == 0 && steps[i] >= 1 && steps[i] <= 8;
    }
    return is_good;
}

bool fake_map_make(FakeMap *map, int dtype, uint32_t rank, void *data, const uint64_t *sizes,
                   const uint64_t *stride_bytes, const uint32_t *box,
                   const uint32_t *element_strides) {
    *map = (FakeMap){.data = data, .dtype = (int16_t)dtype, .rank = (uint16_t)rank};
    bool is_good = set_axes(map, sizes, stride_bytes, element_strides);
    for (uint32_t i = 0; is_good && i < rank; i++) {
        map->box[i] = (uint16_t)box[i];
        is_good = box[i] >= 1 && box[i] <= 256 && element_strides[i] == 1;
    }
    return is_good;
}

bool fake_map_make_im2col(FakeMap *map, int dtype, uint32_t rank, void *data, const uint64_t *sizes,
                          const uint64_t *stride_bytes, const FakeWindows *windows,
                          const uint32_t *element_strides) {
    static const int corners[] = {[3] = 1 << 15, [4] = 1 << 7, [5] = 1 << 4};
    *map =
        (FakeMap){.data = data, .dtype = (int16_t)dtype, .rank = (uint16_t)rank, .is_im2col = true};
    bool is_good = rank >= 3 && set_axes(map, sizes, stride_bytes, element_strides) &&
                   windows->n_channels >= 1 && windows->n_channels <= 256 &&
                   windows->n_pixels >= 1 && windows->n_pixels <= 1024 && element_strides[0] == 1 &&
                   element_strides[rank - 1] == 1;
    map->box[0] = (uint16_t)windows->n_channels;
    map->box[rank - 1] = (uint16_t)windows->n_pixels;
    for (uint32_t i = 0; is_good && i + 2 < rank; i++) {
        int lower = windows->lower[i], upper = windows->upper[i], most = corners[rank];
        map->lower[i] = (int16_t)lower;
        map->upper[i] = (int16_t)upper;
        is_good = lower >= -most && lower < most && upper >= -most && upper < most &&
                  lower < (int64_t)sizes[i + 1] + upper;
    }
    return is_good;
}
