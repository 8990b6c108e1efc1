# Dims in the middle of those of the file that includes this.
include "dims.g"
dim F = 2 * D
def linear(x, n) {
  param weight: f32[dim(x, -1), n]
  return x @ weight
}
