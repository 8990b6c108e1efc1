# Defs with params: each call names them. Dims, dtypes and parts of names may be arguments, names of
# calls inside defs join, and the same name again is the same param.
dim B in 1..64
dim V = 8

def linear(x, n, T=f32) {
  param weight: T[dim(x, -1), n]
  return x @ weight
}
def norm(x, key="scale") {
  param w: f32[dim(x, -1)] = "{key}.weight"
  return x * w
}
def block(x, k) = norm(linear(x, V) as "up.{k}") as ""
def pair(x) = block(x, 0) as "pair"
# Without params of its own, a def passes on the name of its call.
def both(x) = pair(pair(x) as "first") as "second"

graph modules(x: f32[B, V], as: f32[B, V], second_pair_up_0_weight: f32[B, V]) -> (y: f32[B, V], a_w: f32[B, V]) {
  param table: f32[V, V] = "tied.weight"
  h = both(x) as "net"
  t = linear(h, V) as "tied"
  s = linear(linear(t, V) as "shared", V) as "shared"
  u = pair(s * second_pair_up_0_weight) as "second"
  n = norm(norm(u, key="0")  as "", key="0-1.") as ""
  y = n @ table + as
  a_w = norm(s, key="") as "a_w"
}
#| dim B in 1..64
#|
#| graph modules(x: f32[B, 8], as: f32[B, 8], second_pair_up_0_weight: f32[B, 8]) -> (y: f32[B, 8], a_w: f32[B, 8]) {
#|   param table: f32[8, 8] = "tied.weight"
#|   param net_first_pair_up_0_weight: f32[8, 8] = "net.first.pair.up.0.weight"
#|   v5 = matmul(x, net_first_pair_up_0_weight)
#|   param net_first_pair_scale_weight: f32[8] = "net.first.pair.scale.weight"
#|   v7 = mul(v5, net_first_pair_scale_weight)
#|   param net_second_pair_up_0_weight: f32[8, 8] = "net.second.pair.up.0.weight"
#|   v9 = matmul(v7, net_second_pair_up_0_weight)
#|   param net_second_pair_scale_weight: f32[8] = "net.second.pair.scale.weight"
#|   h = mul(v9, net_second_pair_scale_weight)
#|   t = matmul(h, table)
#|   param shared_weight: f32[8, 8] = "shared.weight"
#|   v14 = matmul(t, shared_weight)
#|   s = matmul(v14, shared_weight)
#|   v16 = mul(s, second_pair_up_0_weight)
#|   param second_pair_up_0_weight_2: f32[8, 8] = "second.pair.up.0.weight"
#|   v18 = matmul(v16, second_pair_up_0_weight_2)
#|   param second_pair_scale_weight: f32[8] = "second.pair.scale.weight"
#|   u = mul(v18, second_pair_scale_weight)
#|   param _0_weight: f32[8] = "0.weight"
#|   v22 = mul(u, _0_weight)
#|   param _0_1__weight: f32[8] = "0-1..weight"
#|   n = mul(v22, _0_1__weight)
#|   v25 = matmul(n, table)
#|   y = add(v25, as)
#|   param a_w__weight: f32[8] = "a_w..weight"
#|   a_w = mul(s, a_w__weight)
#| }
