/* A CPU's loads of lanes that are contiguous or a few elements apart, or share elements. Internal
 * to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_NEAR_H
#define FUSEC_CODEGEN_SCALAR_POINT_NEAR_H

#include "codegen/scalar/point.h"

/* The distance of the load's lanes in elements, from 1 to INDEX_NEAR_STRIDE; 0: point_load_near
 * cannot load them. */
uint32_t point_near_stride(const Point *point, const Scalar *load);
/* Loads the lanes; `outside`, a constant, is the value of those where the guard fails. NULL: they
 * may have any. */
Val point_load_near(Point *point, const Scalar *load, uint32_t arg, uint32_t stride, Val outside);

/* The lanes that share an element of the load, whose elements are side by side; 0:
 * point_load_shared cannot load them. */
uint32_t point_shared_lanes(const Point *point, const Scalar *load);
/* Loads the lanes where the condition holds, which is that of all or of each; NULL: all do. */
Val point_load_shared(Point *point, const Scalar *load, uint32_t arg, uint32_t n, Val condition);

/* Loads `n` elements and repeats them over the lanes. */
Val point_load_repeated(Point *point, const Scalar *load, uint32_t arg, uint32_t n);

/* Of point.c: */
/* The address of an element of a kernel's argument. */
Val point_element_pointer(const Lower *lower, uint32_t arg, Val address);
Val point_plain_load(const Lower *lower, uint32_t arg, LLVMTypeRef type, Val pointer,
                     uint32_t align_bytes);

#endif
