graph logarithm(x: f32[4, 8], v: f32[8, 3]) -> (y: f32[4, 3], z: f32[4, 1]) {
  online {
    m = max(x, axis=1, keep=true)
    e = exp(x - m)
    t = sum(e, axis=1, keep=true)
    y = (e / t) @ v
    # error@+1 online: `sqrt` reads the sum of a softmax in an `online` block, which its op does not give (help: Compute it again outside the block, for that reader.
    z = sqrt(t)
  }
}
