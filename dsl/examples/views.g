# Twelve programs made of views. A view moves no data: it says where an element is read from, so each
# of these is a single kernel and none of them copies.
dim B in 1..65536
dim T in 4..65536
dim H in 2..1024 mult 2
dim V in 1..1048576

# A transposed operand is read with its strides swapped.
graph transpose_add(x: f32[B, T], y: f32[T, B]) -> (z: f32[B, T]) {
  z = x + transpose(y, perm=[1, 0])
}

# The slice straddles the seam of the concat, at a place known only at run time.
graph slice_of_concat(a: f32[B, 8], b: f32[T, 8]) -> (c: f32[B + T - 2, 8]) {
  c = concat([a, b], axis=0)[1:-1] * 2.0
}

# From rows of all heads side by side to one matrix per head.
graph split_heads(x: bf16[B, T, 512]) -> (q: bf16[B, 8, T, 64]) {
  q = transpose(reshape(x, [B, T, 8, 64]), perm=[0, 2, 1, 3]) * 0.125
}

# And back again.
graph merge_heads(o: bf16[B, 8, T, 64], x: bf16[B, T, 512]) -> (y: bf16[B, T, 512]) {
  y = reshape(transpose(o, perm=[0, 2, 1, 3]), [B, T, 512]) + x
}

# Sums over windows of four that begin one before the first element and end two after the last.
graph pad_then_reduce(x: f32[B, T]) -> (s: f32[B]) {
  p = pad(x, low=[0, 1], high=[0, 2], value=1.0)
  s = sum(p[:, :-3] + p[:, 1:-2] + p[:, 2:-1] + p[:, 3:], axis=1)
}

# Rows picked from a table by an index tensor: token and position embedding.
graph gather_add(table: f32[V, 64], ids: i32[B, T], pos: f32[T, 64]) -> (e: f32[B, T, 64]) {
  e = gather(table, ids, axis=0) + pos
}

# A column stretched over a matrix.
graph expand_mul(x: f32[B, T], scale: f32[B]) -> (y: f32[B, T]) {
  y = x * expand(reshape(scale, [B, 1]), [B, T])
}

# Even rows minus odd rows.
graph strided_slice(x: f32[H, T]) -> (d: f32[H / 2, T]) {
  d = x[::2] - x[1::2]
}

# Rows of pairs, the pairs' members apart: a complex number's parts from interleaved storage.
graph reshape_transpose(x: f32[B, H]) -> (y: f32[B, 2, H / 2]) {
  y = -transpose(reshape(x, [B, -1, 2]), perm=[0, 2, 1])
}

# One row and one column, met in an outer sum.
graph rows_and_columns(x: f32[B, T]) -> (y: f32[B, T]) {
  y = x[0] + x[:, -1:]
}

# Five points without the diagonals, in the inside of a grid.
graph cross_stencil(x: f32[T, T]) -> (y: f32[T - 2, T - 2]) {
  y = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4.0 * x[1:-1, 1:-1]
}

# A causal mask from two index tensors: nothing is stored for it.
graph iota_mask(s: f32[B, T, T]) -> (m: f32[B, T, T]) {
  m = where(iota([T, T], axis=1) <= iota([T, T], axis=0), s, -inf)
}
