graph g(x: f32[8]) -> (y: f32[8]) {
  # error@+1 unknown-op: unknown op `sigmod` (help: Did you mean `sigmoid`?
  a = sigmod(x)
  # error@+1 unknown-op: unknown op `permute` (help: Did you mean `transpose`?
  b = permute(x, [0])
  # error@+1 unknown-op: unknown op `softmaxx` (help: Did you mean `softmax`?
  c = softmaxx(x)
  # error@+1 unknown-op: unknown op `input`
  d = input(x)
  # error@+1 unknown-op: unknown op `rleu` (help: Did you mean `relu`?
  e = rleu(x)
  # error@+1 unknown-op: unknown op `asb` (help: Did you mean `abs`?
  f = asb(x)
  # error@+1 unknown-op: unknown op `erfc` (help: fusec has no `erfc`: `1 - erf(x)` is within 1e-7 of it
  h = erfc(x)
  # error@+1 unknown-op: unknown op `fmod` (help: Did you mean `rem`?
  i = fmod(x, x)
  y = a + b + c + d + e + f + h + i
}
