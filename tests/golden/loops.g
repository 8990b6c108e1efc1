# Loops: carried values, params by name and by number, collected values, steps of either sign, loops in
# loops, in defs and with calls of defs, and `loop` and `with` as names.
dim B in 1..64
dim L = 2

def linear(x, n) {
  param weight: f32[dim(x, -1), n]
  return x @ weight
}
def stack(xs, n) = loop k in 0:n { return reshape(xs[k], [1, B, 8]) }
def cell(h, x) {
  n = tanh(linear(x, 8) as "in" + linear(h, 8) as "hidden")
  return n, n * 2.0
}
def layers(x, count) {
  return loop i in 0:count with h = x {
    param scale: f32[8] = "scale.{i}"
    return linear(h * scale, 8) as "{i}"
  }
}

graph loops(x: f32[3, B, 8], loop: f32[B, 8], with: f32[B, 8]) -> (y: f32[B, 8], z: f32[3, B, 8], s: f32[B, 8]) {
  param w: f32[L, 8, 8] = "stack"
  h = loop i in 0:L with h = loop {
    a = relu(h @ w[i])
    param s: f32[8] = "layers.{i}.scale"
    return linear(a * s, 8) as "layers.{i}"
  }
  y, zs = loop t in 2:-1:-1 with c = h * with { return cell(c, x[t]) as "rnn" }
  z = concat(stack(zs, 3))
  grid = loop i in 0:2 {
    row = loop k in i:2 { return h * (i + 0.5) * with[:, k:k+1], k }
    return row[0]
  }
  none_of_it = loop i in 0:0 with c = grid[1][0] { return c + 1.0 }
  v = loop i in 0:4:2 with c = none_of_it { return c[:, i:] * 1.0 + c[:, :1] }
  s = layers(grid[0][1], L) as "tail" + sum(v)
}
#| dim B in 1..64
#|
#| graph loops(x: f32[3, B, 8], loop: f32[B, 8], with: f32[B, 8]) -> (y: f32[B, 8], z: f32[3, B, 8], s: f32[B, 8]) {
#|   param w: f32[2, 8, 8] = "stack"
#|   v4 = slice(w, begin=[0, 0, 0], shape=[1, 8, 8])
#|   v5 = reshape(v4, [8, 8])
#|   v6 = matmul(loop, v5)
#|   v7 = relu(v6)
#|   param layers_0_scale: f32[8] = "layers.0.scale"
#|   v9 = mul(v7, layers_0_scale)
#|   param layers_0_weight: f32[8, 8] = "layers.0.weight"
#|   v11 = matmul(v9, layers_0_weight)
#|   v12 = slice(w, begin=[1, 0, 0], shape=[1, 8, 8])
#|   v13 = reshape(v12, [8, 8])
#|   v14 = matmul(v11, v13)
#|   v15 = relu(v14)
#|   param layers_1_scale: f32[8] = "layers.1.scale"
#|   v17 = mul(v15, layers_1_scale)
#|   param layers_1_weight: f32[8, 8] = "layers.1.weight"
#|   h = matmul(v17, layers_1_weight)
#|   v20 = mul(h, with)
#|   v21 = slice(x, begin=[2, 0, 0], shape=[1, B, 8])
#|   v22 = reshape(v21, [B, 8])
#|   param rnn_in_weight: f32[8, 8] = "rnn.in.weight"
#|   v24 = matmul(v22, rnn_in_weight)
#|   param rnn_hidden_weight: f32[8, 8] = "rnn.hidden.weight"
#|   v26 = matmul(v20, rnn_hidden_weight)
#|   v27 = add(v24, v26)
#|   v28 = tanh(v27)
#|   v29 = const(2.0, f32)
#|   v30 = mul(v28, v29)
#|   v31 = slice(x, begin=[1, 0, 0], shape=[1, B, 8])
#|   v32 = reshape(v31, [B, 8])
#|   v33 = matmul(v32, rnn_in_weight)
#|   v34 = matmul(v28, rnn_hidden_weight)
#|   v35 = add(v33, v34)
#|   v36 = tanh(v35)
#|   v37 = mul(v36, v29)
#|   v38 = slice(x, begin=[0, 0, 0], shape=[1, B, 8])
#|   v39 = reshape(v38, [B, 8])
#|   v40 = matmul(v39, rnn_in_weight)
#|   v41 = matmul(v36, rnn_hidden_weight)
#|   v42 = add(v40, v41)
#|   y = tanh(v42)
#|   v44 = mul(y, v29)
#|   v45 = reshape(v30, [1, B, 8])
#|   v46 = reshape(v37, [1, B, 8])
#|   v47 = reshape(v44, [1, B, 8])
#|   z = concat([v45, v46, v47], axis=0)
#|   v49 = const(0.5, f32)
#|   v50 = mul(h, v49)
#|   v51 = slice(with, begin=[0, 1], shape=[B, 1])
#|   v52 = mul(v50, v51)
#|   v53 = const(1.5, f32)
#|   v54 = mul(h, v53)
#|   none_of_it = mul(v54, v51)
#|   v56 = const(1.0, f32)
#|   v57 = mul(none_of_it, v56)
#|   v58 = slice(none_of_it, begin=[0, 0], shape=[B, 1])
#|   v59 = add(v57, v58)
#|   v60 = slice(v59, begin=[0, 2], shape=[B, 6])
#|   v61 = mul(v60, v56)
#|   v62 = slice(v59, begin=[0, 0], shape=[B, 1])
#|   v = add(v61, v62)
#|   param tail_scale_0: f32[8] = "tail.scale.0"
#|   v65 = mul(v52, tail_scale_0)
#|   param tail_0_weight: f32[8, 8] = "tail.0.weight"
#|   v67 = matmul(v65, tail_0_weight)
#|   param tail_scale_1: f32[8] = "tail.scale.1"
#|   v69 = mul(v67, tail_scale_1)
#|   param tail_1_weight: f32[8, 8] = "tail.1.weight"
#|   v71 = matmul(v69, tail_1_weight)
#|   v72 = sum(v, axis=[0, 1])
#|   s = add(v71, v72)
#| }
