dim T in 0..3
dim N in 0..100

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

def affine(first, then) {
  return first[0] * then[0], first[1] * then[0] + then[1]
}
def latest(a, b) = where(isnan(b), a, b)
def count(a, b) {
  return a[0] + b[0], where(a[1], cast(b[0] > 1, bool), a[1] != b[1])
}

graph in_loop(a: f32[N, 4], b: f32[N, 4], n: i32[T]) -> (h: f32[N, 4], g: f32[N, 4], y: f32[N, 4], z: i32[T]) {
  z = -n
  g, h = scan(affine, [a, b * 2])
  y = loop i in 0:T with y = b {
    return scan(latest, y + a, axis=1, reverse=true)
  }
}
graph in_tiles(a: f16[3, 5000], i: u8[3, N], m: bool[3, N]) -> (h: f16[3, 5000], k: u8[3, N], l: bool[3, N]) {
  _, h = scan(affine, [a, a], axis=1)
  k, l = scan(count, [i, m], axis=1)
}
#| dim T in 0..3
#| dim N in 0..100
#|
#| def combine_0(a, b) {
#|   v4 = add(a[0], b[0])
#|   return v4, b[1]
#| }
#|
#| def combine_1(a, b) {
#|   v2 = minimum(a[0], b[0])
#|   return v2
#| }
#|
#| def combine_2(a, b) {
#|   v4 = mul(a[0], b[0])
#|   v5 = mul(a[1], b[0])
#|   v6 = add(v5, b[1])
#|   return v4, v6
#| }
#|
#| def combine_3(a, b) {
#|   v2 = not_equal(b[0], b[0])
#|   v3 = where(v2, a[0], b[0])
#|   return v3
#| }
#|
#| def combine_4(a, b) {
#|   v4 = mul(a[0], b[0])
#|   v5 = mul(a[1], b[0])
#|   v6 = add(v5, b[1])
#|   return v4, v6
#| }
#|
#| def combine_5(a, b) {
#|   v4 = add(a[0], b[0])
#|   v5 = const(1, u8)
#|   v6 = greater(b[0], v5)
#|   v7 = not_equal(a[1], b[1])
#|   v8 = where(a[1], v6, v7)
#|   return v4, v8
#| }
#|
#| graph functions(x: f32[T, 2], n: i32[2]) -> (y: f32[T, 2], s: f32[T, 2], m: i32[2], k: i32[3]) {
#|   v2 = exp(x)
#|   y = exp(v2)
#|   s = scan_by([x, y], combine=combine_0, axis=0, result=0)
#|   v5 = slice(n, begin=[1], shape=[2], step=[-1])
#|   v6 = scan_by([v5], combine=combine_1, axis=0, result=0)
#|   m = slice(v6, begin=[1], shape=[2], step=[-1])
#|   k = iota([3], axis=0)
#| }
#|
#| graph in_loop(a: f32[N, 4], b: f32[N, 4], n: i32[T]) -> (h: f32[N, 4], g: f32[N, 4], y: f32[N, 4], z: i32[T]) {
#|   z = neg(n)
#|   v4 = const(2.0, f32)
#|   v5 = mul(b, v4)
#|   gs = loop q in 0:2 {
#|     g = scan_by([a, v5], combine=combine_2, axis=0, result=q)
#|     return g
#|   }
#|   v8 = loop_carry(b)
#|   v9 = add(v8, a)
#|   v10 = slice(v9, begin=[0, 3], shape=[N, 4], step=[1, -1])
#|   v11 = scan_by([v10], combine=combine_3, axis=1, result=0)
#|   v12 = slice(v11, begin=[0, 3], shape=[N, 4], step=[1, -1])
#|   y = loop_result([v8], [v12], T, 0)
#|   h = gs[1]
#|   g = gs[0]
#| }
#|
#| graph in_tiles(a: f16[3, 5000], i: u8[3, N], m: bool[3, N]) -> (h: f16[3, 5000], k: u8[3, N], l: bool[3, N]) {
#|   v3 = pad(a, low=[0, 0], high=[0, 3192], value=0.0)
#|   v4 = reshape(v3, [3, 2, 4096])
#|   v5s = loop q_1 in 0:2 {
#|     v5 = scan_by([v4, v4], combine=combine_4, axis=2, result=q_1)
#|     return v5
#|   }
#|   v8s = loop q_2 in 0:2 {
#|     v7 = slice(v5s[q_2], begin=[0, 0, 4095], shape=[3, 2, 1])
#|     v8 = reshape(v7, [3, 2])
#|     return v8
#|   }
#|   v11 = scan_by([v8s[0], v8s[1]], combine=combine_4, axis=1, result=1)
#|   v12 = iota([2], axis=0)
#|   v13 = const(1, i32)
#|   v14 = sub(v12, v13)
#|   v15 = gather(v11, v14, axis=1)
#|   v16 = reshape(v15, [3, 2, 1])
#|   v17 = expand(v16, [3, 2, 4096])
#|   v18 = mul(v17, v5s[0])
#|   v19 = add(v18, v5s[1])
#|   v20 = iota([3, 2, 4096], axis=1)
#|   v21 = const(0, i32)
#|   v22 = greater(v20, v21)
#|   v23 = where(v22, v19, v5s[1])
#|   v24 = reshape(v23, [3, 8192])
#|   h = slice(v24, begin=[0, 0], shape=[3, 5000])
#|   ks = loop q_6 in 0:2 {
#|     k = scan_by([i, m], combine=combine_5, axis=1, result=q_6)
#|     return k
#|   }
#|   k = ks[0]
#|   l = ks[1]
#| }
