# One step of heat flow on a plate. Shifted slices of one tensor are a stencil, and the pad says
# that nothing changes on the border. Slices and pads are views: the compiler moves addresses, not
# data. The range of H and W says that the plate has an inside.
dim H in 3..32768
dim W in 3..32768

graph heat2d(t: f32[H, W], alpha: f32) -> (next: f32[H, W]) {
  inside = t[1:-1, 1:-1]
  around = t[:-2, 1:-1] + t[2:, 1:-1] + t[1:-1, :-2] + t[1:-1, 2:]
  change = alpha * (around - 4.0 * inside)
  next = t + pad(change, low=[1, 1], high=[1, 1])
}
