# `fuse` blocks keep their statements; `fuse` is a word of the language only before `must` or `never`.
graph contracts(x: f32[64, 100]) -> (y: f32[64, 100], z: f32[64]) {
  fuse = x + 1.0
  fuse never {
    e = exp(fuse)
    never = e * 0.5
  }
  fuse must {
    must = sum(never, axis=1, keep=true)
    y = never / must
  }
  fuse must { z = sum(y * y, axis=1) }
}
#| graph contracts(x: f32[64, 100]) -> (y: f32[64, 100], z: f32[64]) {
#|   v1 = const(1.0, f32)
#|   fuse = add(x, v1)
#|   fuse never {
#|     e = exp(fuse)
#|     v4 = const(0.5, f32)
#|     never = mul(e, v4)
#|   }
#|   fuse must {
#|     must = sum(never, axis=[1], keep=true)
#|     y = div(never, must)
#|   }
#|   fuse must {
#|     v8 = mul(y, y)
#|     z = sum(v8, axis=[1])
#|   }
#| }
