dim N in 4..9

graph g(x: f32[N, 4], u: f32[1, 4], h: f16[1, 4], w: f32[5, 4], v: f32[4], at: i32, far: i64, where_: f32, p: i32[3]) -> (y: f32[N, 4]) {
  # error@+1 dtype-mismatch: operands of `dynamic_update_slice` are f32 and f16 (help: Nothing is promoted silently: cast the update.
  a = dynamic_update_slice(x, h, [at, 0])
  # error@+1 shape-mismatch: an update of the shape (5, 4) may not fit into (N, 4) (help: It has the rank of `x`, at least 1, and no extent that can be greater.
  b = dynamic_update_slice(x, w, [at, 0])
  # error@+1 shape-mismatch: an update of the shape (4,) may not fit into (N, 4)
  c = dynamic_update_slice(x, v, [at, 0])
  # error@+1 shape-mismatch: `starts` of `dynamic_update_slice` have the shape (3,), not (2,) (help: They have a number for each axis.
  d = dynamic_update_slice(x, u, p)
  # error@+1 dtype-mismatch: `starts` of `dynamic_update_slice` are f32, not i32 or i64 (help: Write cast(starts, i32).
  e = dynamic_update_slice(x, u, [where_, 0])
  # error@+1 dtype-mismatch: `starts` of `dynamic_update_slice` are i32 and i64: cast them to one dtype
  f = dynamic_update_slice(x, u, [at, far])
  # error@+1 bad-argument: `starts` of `dynamic_update_slice` have a scalar for each axis, not a tensor i32[3]
  g = dynamic_update_slice(x, u, [0, p])
  y = x
}
