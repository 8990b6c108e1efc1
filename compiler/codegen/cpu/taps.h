/* The interface between both ways to compute taps on a CPU: in place (cpu_taps.c) and from planes
 * (taps_planes.c). */
#ifndef FUSEC_CODEGEN_CPU_TAPS_H
#define FUSEC_CODEGEN_CPU_TAPS_H

#include "codegen/cpu/cpu.h"

typedef struct Taps {
    Lower *lower;
    Point unit;
    uint32_t lanes;
    int64_t depth;
    const Point
        *points; /* per tap, in the walked axis's loop around that of the lanes; else NULL */
    PointPiece piece;
    Val begin, end; /* of the walked axis */
    uint32_t n_chains;
} Taps;

/* Computes the unit's outputs from planes. */
void taps_from_planes(const Taps *taps);

#endif
