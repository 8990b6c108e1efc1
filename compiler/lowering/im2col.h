/* Left operands of products of which each row is a window over an image: k goes from tap to tap,
 * and within a tap over the channels of the pixel that lies so far from the row's own, zeros where
 * there is no such pixel. That is how convolutions are products (im2col). The copy engine of a GPU
 * fetches such rows from the image, and nothing lays them out in memory. */
#ifndef FUSEC_LOWERING_IM2COL_H
#define FUSEC_LOWERING_IM2COL_H

#include "ir/dim.h"

enum { IM2COL_MAX_SPATIAL = 3, IM2COL_MAX_TAPS = 64 };

/* Of an axis along which windows lie. The row's number along it is m / per % n, and its own pixel
 * lower + step times that. */
typedef struct Im2colAxis {
    int64_t per, n;
    int64_t size, stride; /* the image's: pixels, elements from one to the next */
    int64_t step, lower;
} Im2colAxis;

/* Pixels from the row's own along each axis, from k = `first` on; its channels from `channel` on.
 */
typedef struct Im2colTap {
    int64_t first, channel;
    uint32_t offsets[IM2COL_MAX_SPATIAL];
} Im2colTap;

typedef struct Im2col {
    uint32_t buffer;
    int64_t n_channels;
    uint32_t n_spatial;
    Im2colAxis axes[IM2COL_MAX_SPATIAL]; /* innermost first */
    int64_t rows;                        /* of an image */
    DimId n_images;
    int64_t image_stride; /* elements */
    uint32_t n_taps;
    Im2colTap taps[IM2COL_MAX_TAPS];
} Im2col;

/* How many pixels before the last the last window's own one lies, as the copy engine wants it: not
 * negative where windows end with the image. */
static inline int64_t im2col_upper(const Im2colAxis *axis) {
    return axis->lower + axis->step * (axis->n - 1) + 1 - axis->size;
}

#endif
