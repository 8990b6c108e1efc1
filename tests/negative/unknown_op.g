graph g(x: f32[8]) -> (y: f32[8]) {
  # error@+1 unknown-op: unknown op `sigmod` (help: Did you mean `sigmoid`?
  a = sigmod(x)
  # error@+1 unknown-op: unknown op `permute` (help: Did you mean `transpose`?
  b = permute(x, [0])
  # error@+1 unknown-op: unknown op `softmaxx` (help: Did you mean `softmax`?
  c = softmaxx(x)
  # error@+1 unknown-op: unknown op `input`
  d = input(x)
  y = a + b + c + d
}
