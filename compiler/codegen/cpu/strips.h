/* Packing the rows of an image in strips, on a CPU. See template/cpu_strips.h. */
#ifndef FUSEC_CODEGEN_CPU_STRIPS_H
#define FUSEC_CODEGEN_CPU_STRIPS_H

#include "codegen/cpu/cpu.h"
#include "template/cpu_strips.h"

/* The row of an image that tap 0 reads at one step of k. */
typedef struct StripRow {
    Lower *lower;
    const CpuStrips *strips;
    ScalarId value;
    Dtype acc;            /* of the packed elements */
    uint32_t axis, lanes; /* lanes: the elements that are stored at a time */
    uint32_t width;       /* numbers of an element: 1, or the lanes of the point */
    ScalarId outside;    /* of the strips, or of conditions on other axes; SCALAR_NONE: no guards */
    GuardId inside;      /* where the value is not `outside` */
    Point point;         /* all axes are set but `axis` */
    Val begin, n;        /* windows */
    Val memory;          /* of the first strip */
    uint32_t pitch;      /* elements of a strip */
    uint32_t step;       /* elements from one strip to the next */
    int64_t steps_ahead; /* of k to a row that is prefetched; 0: none is */
} StripRow;

/* Packs the strips of the row. Vectors lie inside of the range in which all guards on the axis
 * hold, and the last one begins earlier rather than have a mask. The rest of a strip has the
 * value outside, also where no window reads it. Changes the row's point. */
void strips_pack_row(StripRow *row);
/* The same of turned strips, for all of a run of k. */
void strips_pack_turned(StripRow *row);
/* The same of strips whose elements are vectors along the point's lane axis. */
void strips_pack_vectors(StripRow *row);

/* One strip. All positions are of the axis, counted from the first window. */
typedef struct Strip {
    const StripRow *row;
    uint32_t number;
    Val from, to; /* the elements of the image */
    Point point;  /* of the step of k */
    Val memory;
    Val ahead; /* the image's row of a later step of k at `begin`; NULL: it is not prefetched */
} Strip;

/* The address of the element. */
Val strip_place(const Strip *strip, Val at);
/* Sets the elements of the strip that are in the image, as far as windows read them. */
void strip_find_inside(Strip *strip);
/* Fills what is not in the image. */
void strip_fill_around(Strip *strip);
/* Packs a vector of neighbours from `at` on. `mask`, or NULL: those of them that exist. */
typedef void StripPack(const void *user, Val at, Val mask);
/* Packs all of the strip that is in the image, the last vector from an earlier neighbour on. Only a
 * strip that is shorter than a vector has a mask. */
void strip_each_vector(const Strip *strip, StripPack *pack, const void *user);

#endif
