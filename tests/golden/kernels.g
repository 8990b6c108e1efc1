# Fixed kernels group statements; params and inputs stay outside.
weights "w.safetensors"
dim B in 1..64
graph kernels(x: f32[B, 8]) -> (y: f32[B, 8], z: f32[B, 8], t: f32[B, 8]) {
  kernel first {
    param w: f32[8] = "layer.0/w"
    h = x * w
    y = softmax(h, axis=[0, 1])
  }
  kernel second { m = max(h, axis=1, keep=true); z = h - m }
  t = y
}
#| weights "w.safetensors"
#| dim B in 1..64
#|
#| graph kernels(x: f32[B, 8]) -> (y: f32[B, 8], z: f32[B, 8], t: f32[B, 8]) {
#|   param w: f32[8] = "layer.0/w"
#|   kernel first {
#|     h = mul(x, w)
#|     v3 = max(h, axis=[0, 1], keep=true)
#|     v4 = sub(h, v3)
#|     v5 = exp(v4)
#|     v6 = sum(v5, axis=[0, 1], keep=true)
#|     y = div(v5, v6)
#|   }
#|   kernel second {
#|     m = max(h, axis=[1], keep=true)
#|     z = sub(h, m)
#|   }
#|   t = y
#| }
