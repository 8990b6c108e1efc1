graph other_reader(x: f32[4, 8], v: f32[8, 3]) -> (y: f32[4, 3], z: f32[4, 8]) {
  online {
    # error@+1 online: the weights of a softmax in an `online` block have another reader than a product along their axis (help: Compute them again outside the block, for that reader.
    p = softmax(x)
    y = p @ v
  }
  z = p * 2
}
