graph g(x: f32[8, 8]) -> (y: f32[8, 1]) {
  # error@+1 unknown-argument: `sum` has no parameter `keepdims` (help: Did you mean `keep`?
  a = sum(x, axis=1, keepdims=true)
  # error@+1 unknown-argument: `sum` has no parameter `dim` (help: Did you mean `axis`?
  b = sum(x, dim=1, keep=true)
  # error@+1 unknown-argument: `softmax` has no parameter `axs` (help: Did you mean `axis`?
  c = softmax(x, axs=1)
  # error@+1 unknown-argument: `sum` has no parameter `ax` (help: Did you mean `axis`?
  f = sum(x, ax=1)
  # error@+1 unknown-argument: `clamp` has no parameter `least` (help: Its parameters are: x, min, max.
  h = clamp(x, least=0)
  # error@+1 unknown-argument: `exp` has no parameter `base` (help: It takes 1 by position, `exp(a)`
  d = exp(x, base=2)
  # error@+1 unknown-argument: `pad` has no parameter `around` (help: Its parameters are: x, low, high, value, interior, mode.
  e = pad(x, low=[0, 0], high=[0, 0], around="edge")
  y = a + b + c + d + e + f + h
}
