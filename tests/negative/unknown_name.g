dim Batch in 1..64
graph g(input: f32[Batch, 8]) -> (y: f32[Batch, 8]) {
  # error@+1 unknown-name: unknown name `inptu` (help: Did you mean `input`?
  a = relu(inptu)
  # error@+1 unknown-name: unknown name `len` (help: `len` is a function
  b = len + 1
  # error@+1 unknown-name: unknown name `Bath` (help: Did you mean `Batch`?
  c = expand(input, [Bath, 8])
  # error@+1 unknown-name: a tensor f32[Batch, 8] has no field `T` (help: fusec has no `T`; write `transpose(x)`.
  d = input.T
  y = a + b + c + d
}
