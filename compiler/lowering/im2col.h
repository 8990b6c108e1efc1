/* GEMMs whose lhs is im2col: convolutions. Each row of the lhs is a window over an image. k goes
 * from tap to tap; within a tap it goes over the channels of one pixel, at the tap's offset from
 * the row's own pixel, or zeros where no pixel exists. A GPU's copy engine fetches such rows from
 * the image, so they never exist in memory. */
#ifndef FUSEC_LOWERING_IM2COL_H
#define FUSEC_LOWERING_IM2COL_H

#include "ir/dim/dim.h"

enum { IM2COL_MAX_SPATIAL = 3, IM2COL_MAX_TAPS = 64 };

/* A spatial axis. The row's position along it is m / per % n, and its own pixel is lower + step
 * times that. */
typedef struct Im2colAxis {
    int64_t per, n;
    int64_t size, stride; /* of the image: pixels, and elements from one pixel to the next */
    int64_t step, lower;
} Im2colAxis;

/* A tap: for k from `first` on, the pixel offsets along each axis, and the channels from `channel`
 * on. */
typedef struct Im2colTap {
    int64_t first, channel;
    uint32_t offsets[IM2COL_MAX_SPATIAL];
} Im2colTap;

typedef struct Im2col {
    uint32_t buffer;
    int64_t n_channels;
    uint32_t n_spatial;
    Im2colAxis axes[IM2COL_MAX_SPATIAL]; /* innermost first */
    int64_t rows;                        /* of one image */
    DimId n_images;
    int64_t image_stride; /* elements */
    uint32_t n_taps;
    Im2colTap taps[IM2COL_MAX_TAPS];
} Im2col;

/* The upper corner as the copy engine wants it: the distance of the last window's own pixel from
 * the last pixel, not negative where windows end with the image. */
static inline int64_t im2col_upper(const Im2colAxis *axis) {
    return axis->lower + axis->step * (axis->n - 1) + 1 - axis->size;
}

#endif
