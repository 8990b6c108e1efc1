# error@+1 bad-argument: the path of the weights is empty
weights ""
def module(x) {
  # error@+1 bad-argument: the key of a param is empty
  param w: f32[8] = ""
  return x + w
}
graph g(x: f32[8]) -> (y: f32[8]) {
  # error@+1 bad-argument: the key of a param is empty
  param b: f32[8] = ""
  y = module(x) as "" + b
}
