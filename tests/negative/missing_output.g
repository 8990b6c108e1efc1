graph g(x: f32[8]) -> (result: f32[8],
  # error@+1 missing-output: output `other` is never bound
  other: f32[8]) {
  result = exp(x)
}
# error@+1 missing-output: output `result` is never bound (help: Did you mean `resutl`?
graph h(x: f32[8]) -> (result: f32[8]) {
  resutl = exp(x)
}
# error@+1 missing-output: graph `k` has no output
graph k(x: f32[8]) -> () {
}
