dim T in 0..3

def twice(f, x) = f(f(x))
def sum_and_last(a, b) {
  return a[0] + b[0], b[1]
}

graph functions(x: f32[T, 2], n: i32[2]) -> (y: f32[T, 2], s: f32[T, 2], m: i32[2], k: i32[most(T)]) {
  y = twice(exp, x)
  s, _ = scan(sum_and_last, [x, y])
  m = scan(minimum, n, reverse=true)
  k = iota([most(T)], axis=0)
}
#| dim T in 0..3
#|
#| graph functions(x: f32[T, 2], n: i32[2]) -> (y: f32[T, 2], s: f32[T, 2], m: i32[2], k: i32[3]) {
#|   v2 = exp(x)
#|   y = exp(v2)
#|   v4 = pad(x, low=[2, 0], high=[0, 0], value=0.0)
#|   v5 = slice(v4, begin=[0, 0], shape=[T, 2])
#|   v6 = pad(x, low=[1, 0], high=[0, 0], value=0.0)
#|   v7 = slice(v6, begin=[0, 0], shape=[T, 2])
#|   v8 = add(v5, v7)
#|   v9 = iota([T, 2], axis=0)
#|   v10 = const(2, i32)
#|   v11 = greater_equal(v9, v10)
#|   v12 = where(v11, v8, v7)
#|   v13 = add(v12, x)
#|   v14 = const(1, i32)
#|   v15 = greater_equal(v9, v14)
#|   s = where(v15, v13, x)
#|   v17 = slice(n, begin=[1], shape=[2], step=[-1])
#|   v18 = pad(v17, low=[1], high=[0], value=0)
#|   v19 = slice(v18, begin=[0], shape=[2])
#|   v20 = minimum(v19, v17)
#|   v21 = iota([2], axis=0)
#|   v22 = greater_equal(v21, v14)
#|   v23 = where(v22, v20, v17)
#|   m = slice(v23, begin=[1], shape=[2], step=[-1])
#|   k = iota([3], axis=0)
#| }
