# `a if c else b` chooses while compiling; comparisons of known values are known, for all values of dims.
dim B in 2..64
def biased(x, bias=none) = x if bias == none else x + bias
def folded(x, mode="sum") = sum(x, axis=1) if mode == "sum" else max(x, axis=1) if mode == "max" else x[0, 9]
def wide(x) = cast(x, f32) if dtype(x) == f16 || dtype(x) == bf16 else x
def stretched(x, n) = x * 2.0 if most(dim(x, 0)) <= n else x
def halves(x) = split(x, 2) if rank(x) > 0 && dim(x, 0) % 2 == 0 else [x, x]
graph choices(x: f32[4, B], h: f16[4, B], if: f32[B]) -> (y: f32[4, B], z: f32[4], else: f32[4], v: f32[2, B], t: bool[B], w: f32[4, B]) {
  y = biased(biased(x, bias=if), none) + wide(h) + (1.0 if B >= 2 && B + 1 > B else 2.0)
  z = folded(x, "max")
  else = folded(x)
  v = halves(x)[1 if 2 < 1.5 || none == 3 else 0]
  t = stretched(x[0], 64) > 0 && stretched(x[0], 63) > 0 && 1 <= 2
  w = loop if in 0:2 with w = x { return w * 2.0 }
}
#| dim B in 2..64
#|
#| graph choices(x: f32[4, B], h: f16[4, B], if: f32[B]) -> (y: f32[4, B], z: f32[4], else: f32[4], v: f32[2, B], t: bool[B], w: f32[4, B]) {
#|   v3 = add(x, if)
#|   v4 = cast(h, f32)
#|   v5 = add(v3, v4)
#|   v6 = const(1.0, f32)
#|   y = add(v5, v6)
#|   z = max(x, axis=[1])
#|   else = sum(x, axis=[1])
#|   v = slice(x, begin=[0, 0], shape=[2, B])
#|   v11 = slice(x, begin=[0, 0], shape=[1, B])
#|   v12 = reshape(v11, [B])
#|   v13 = const(2.0, f32)
#|   v14 = mul(v12, v13)
#|   v15 = const(0.0, f32)
#|   v16 = greater(v14, v15)
#|   v17 = greater(v12, v15)
#|   v18 = logical_and(v16, v17)
#|   v19 = const(true, bool)
#|   t = logical_and(v18, v19)
#|   w = loop if_1 in 0:2 with w_1 = x {
#|     v21 = mul(w_1, v13)
#|     return v21
#|   }
#| }
