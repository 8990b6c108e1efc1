weights "a.safetensors"
# error@+1 redefinition: a second `weights` line (note: the first is here
weights "b.safetensors"
dim B in 1..8
# error@+1 redefinition: dim `B` is declared already
dim B in 1..8
# error@+1 redefinition: `f16` is a dtype and cannot be a dim
dim f16 in 1..8
def twice(x) = x + x
# error@+1 redefinition: a second def `twice`
def twice(x) = x * 2.0
# error@+1 redefinition: parameter `x` is given twice
def same(x, x) = x
# error@+1 redefinition: output `y` is declared twice
graph g(x: f32[B]) -> (y: f32[B], y: f32[B]) {
  a = exp(x)
  # error@+1 redefinition: `a` is bound already (note: the first binding is here
  a = relu(x)
  # error@+1 redefinition: `B` is bound already
  B = relu(x)
  # error@+1 redefinition: `i32` is a dtype and cannot be bound
  i32 = relu(x)
  kernel k { b = a * 2 }
  # error@+1 redefinition: a second kernel `k`
  kernel k { c = same(a, b) }
  y = b + c
}
# error@+1 redefinition: `x` is bound already
graph h(x: f32[B]) -> (x: f32[B]) {
}
# error@+1 redefinition: a second graph `g`
graph g(x: f32[B]) -> (y: f32[B]) {
  y = twice(x)
}
