# Defs: keywords and defaults, several results, questions about arguments, shadowing of the prelude.
dim B in 1..64
dim N = 12
def heads(x, n=4) = reshape(x, [x.shape[0], n, dim(x, 1) / n])
def halves(x, axis=-1) {
  a, b = split(x, [x.shape[axis] / 3, x.shape[axis] - x.shape[axis] / 3], axis=axis)
  return a, b
}
def var(x) = sum(x, axis=rank(x) - 1)
def up(x) = cast(x, compute(x))
graph calls(x: f16[B, N]) -> (y: f16[B, 4, 3], a: f16[B, 4], b: f16[B, 8], v: f32[B]) {
  y = heads(x)
  a, b = halves(x)
  v = var(up(x))
}
#| dim B in 1..64
#|
#| graph calls(x: f16[B, 12]) -> (y: f16[B, 4, 3], a: f16[B, 4], b: f16[B, 8], v: f32[B]) {
#|   y = reshape(x, [B, 4, 3])
#|   a = slice(x, begin=[0, 0], shape=[B, 4])
#|   b = slice(x, begin=[0, 4], shape=[B, 8])
#|   v4 = cast(x, f32)
#|   v = sum(v4, axis=[1])
#| }
