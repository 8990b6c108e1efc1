# error@+1 bad-dim: `A` ranges over 9..3, which is empty
dim A in 9..3
# error@+1 bad-dim: `B` ranges over -1..3, which is negative
dim B in -1..3
# error@+1 bad-dim: no multiple of 16 in 1..8 for `C`
dim C in 1..8 mult 16
# error@+1 bad-dim: `D` has the multiple 0, which is not positive
dim D in 1..8 mult 0
# error@+1 bad-dim: a dim's bound must be an integer, not the number 1.5
dim E in 1..1.5
# error@+1 bad-dim: `F` must be an integer, not a string
dim F = "8"
dim N in 0..8
dim M in 2..8
# error@+1 bad-dim: the terms of extent `M*M - ((M) / (3))*((M) / (2))`, each by itself, reach down to -4 (help: Narrow the
graph f(x: f32[M*M - M / 3 * (M / 2)], z: f32[N]) -> (y: f32[N]) {
  y = z
}
# error@+1 bad-dim: extent `N - 1` can be negative: down to -1
graph g(x: f32[N - 1], z: f32[N]) -> (y: f32[N]) {
  # error@+1 bad-dim: divisor `N` is not always positive
  a = reshape(z, [8 / N])
  y = z
}
# error@+1 bad-dim: an extent must be an integer or a dim, not the dtype f32
graph h(x: f32[f32]) -> (y: f32[N]) {
  y = x
}
