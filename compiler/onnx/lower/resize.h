/* Resize, along axes of every kind. */
#ifndef FUSEC_ONNX_RESIZE_H
#define FUSEC_ONNX_RESIZE_H

#include "onnx/call/import_state.h"

typedef enum { INTERPOLATE_NEAREST, INTERPOLATE_LINEAR, INTERPOLATE_CUBIC } Interpolation;

typedef struct Resizing {
    Interpolation kind;
    Str transform, nearest;
    bool is_smooth, excludes, crops; /* antialias; exclude_outside; tf_crop_and_resize */
    double cubic, beyond;            /* cubic_coeff_a; extrapolation_value */
} Resizing;

/* Keys' parameter, where the model gives none. */
#define CUBIC_COEFF (-0.75)

/* The weight of the neighbour at `offset` from the left one, of which the place is `ratio` away;
 * cubic ones with CUBIC_COEFF. */
NodeId tap_weight(Call *c, Interpolation kind, NodeId ratio, int offset);

/* The extent floor(from * scale); DIM_NONE after an error. */
DimId scaled_extent(Call *c, DimId from, double scale);
/* x with `to` elements along an axis, of which one extent at least is no constant: places and
 * weights are computed when the graph runs. Scale 0: to / from. */
NodeId resized_dim(Call *c, NodeId x, uint32_t axis, const Resizing *r, DimId to, double scale);

#endif
