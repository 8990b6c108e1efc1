graph g(x: f32[2, 3]) -> (y: f32[2, 3]) {
  # error@+1 bad-argument: `zeros`: `shape` must be a list, such as [2, 3]
  a = zeros(2, 3)
  # error@+1 bad-argument: `ones`: `shape` must be a list, such as [2, 3]
  b = ones(2)
  # error@+1 bad-argument: `randn`: `shape` must be a list, such as [2, 3], behind `key`
  c = randn(2, 3)
  # error@+1 bad-argument: `rand`: `key` must be a tensor u32[2]; `shape` comes after it
  d = rand(42, [2, 3])
  # error@+1 bad-argument: `repeat`: `repeats` must have a number for each of the 2 axes of `x`; `tile` takes fewer
  e = repeat(x, 2)
  y = x
}
