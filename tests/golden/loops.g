# Loops: carried values, params by name and by number, collected values, steps of either sign, loops in
# loops, in defs and with calls of defs, and `loop` and `with` as names. As they are printed: indices in numbers
# and in keys, numbers that no expression gives, carried values that are swapped, passed on or unread, lists of
# tensors, and steps that are not alike.
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

def unit(x) {
  param w: f32[8, 8]
  return tanh(x @ w)
}

graph nested(x: f32[4, 3, B, 8], s: f32[B, 8]) -> (y: f32[B, 8], z: f32[B, 8]) {
  y, zs = loop i in 0:4 with h = s {
    param bias: f32[8] = "layers.{i}.bias"
    g, each = loop t in 2:-1:-1 with g = h + bias {
      n = unit(g + x[i, t]) as "layers.{i}.cells.{t}"
      return n + 1.5, n
    }
    return g * [0.25, 0.5, 2.0, 1.0][i], each[1]
  }
  z = zs[0] + zs[3]
}

graph carried(a: f32[B, 8], b: f32[B, 8]) -> (c: f32[B, 8], d: f32[B, 8], e: f32[B, 8]) {
  scale = sqrt(2.0)
  m = a + b
  c, d, _ = loop i in 1:7:2 with p = a, q = b, r = a {
    return q, exp(p) * scale - [a, b, m][i / 2] * i, r
  }
  pair = loop i in 0:3 with pair = [a, c] { return [pair[1] * scale, pair[0] + pair[1]] }
  e = pair[0] + exp(a)
}

graph shared(x: f32[B, 8]) -> (y: f32[B, 8]) {
  first = loop i in 0:3 with h = x { return h * exp(cast(iota([8]), f32)) }
  y = loop i in 0:3 with h = first { return h - exp(cast(iota([8]), f32)) }
}

graph unlike(x: f32[B, 8], w: f32[8, 8]) -> (y: f32[B, 8], z: f32[B, 8]) {
  y = loop i in 0:3 with h = x { return h @ w + h if i % 2 == 0 else h @ w }
  steps = loop i in 0:3 with h = x { return sin(h), h * i }
  z = steps[1][2]
}

# The second loop has the nodes of the first.
graph longer(x: f32[B, 8], a: f32[B, 8], b: f32[B, 8]) -> (y: f32[B, 8], z: f32[B, 8]) {
  y = loop i in 0:2 with h = x { return h + exp([a, b][i]) }
  z = loop i in 0:4 with h = x { return h + exp([a, b, x, y][i]) }
}
#| dim B in 1..64
#|
#| graph loops(x: f32[3, B, 8], loop: f32[B, 8], with: f32[B, 8]) -> (y: f32[B, 8], z: f32[3, B, 8], s: f32[B, 8]) {
#|   param w: f32[2, 8, 8] = "stack"
#|   h = loop i in 0:2 with h_1 = loop {
#|     v4 = slice(w, begin=[i, 0, 0], shape=[1, 8, 8])
#|     v5 = reshape(v4, [8, 8])
#|     v6 = matmul(h_1, v5)
#|     v7 = relu(v6)
#|     param layers_i_scale: f32[8] = "layers.{i}.scale"
#|     v9 = mul(v7, layers_i_scale)
#|     param layers_i_weight: f32[8, 8] = "layers.{i}.weight"
#|     v11 = matmul(v9, layers_i_weight)
#|     return v11
#|   }
#|   v20 = mul(h, with)
#|   y, v30s = loop t in 2:-1:-1 with c = v20 {
#|     v21 = slice(x, begin=[t, 0, 0], shape=[1, B, 8])
#|     v22 = reshape(v21, [B, 8])
#|     param rnn_in_weight: f32[8, 8] = "rnn.in.weight"
#|     v24 = matmul(v22, rnn_in_weight)
#|     param rnn_hidden_weight: f32[8, 8] = "rnn.hidden.weight"
#|     v26 = matmul(c, rnn_hidden_weight)
#|     v27 = add(v24, v26)
#|     v28 = tanh(v27)
#|     v29 = const(2.0, f32)
#|     v30 = mul(v28, v29)
#|     return v28, v30
#|   }
#|   v45s = loop k in 0:3 {
#|     v45 = reshape(v30s[k], [1, B, 8])
#|     return v45
#|   }
#|   z = concat([v45s[0], v45s[1], v45s[2]], axis=0)
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
#|   v71 = loop i_1 in 0:2 with h_2 = v52 {
#|     param tail_scale_i_1: f32[8] = "tail.scale.{i_1}"
#|     v65 = mul(h_2, tail_scale_i_1)
#|     param tail_i_1_weight: f32[8, 8] = "tail.{i_1}.weight"
#|     v67 = matmul(v65, tail_i_1_weight)
#|     return v67
#|   }
#|   v72 = sum(v, axis=[0, 1])
#|   s = add(v71, v72)
#| }
#|
#| graph nested(x: f32[4, 3, B, 8], s: f32[B, 8]) -> (y: f32[B, 8], z: f32[B, 8]) {
#|   y, v17s = loop i in 0:4 with h = s {
#|     param layers_i_bias: f32[8] = "layers.{i}.bias"
#|     v3 = add(h, layers_i_bias)
#|     v25, v9s = loop t in 2:-1:-1 with g = v3 {
#|       v4 = slice(x, begin=[i, t, 0, 0], shape=[1, 1, B, 8])
#|       v5 = reshape(v4, [B, 8])
#|       v6 = add(g, v5)
#|       param layers_i_cells_t_w: f32[8, 8] = "layers.{i}.cells.{t}.w"
#|       v8 = matmul(v6, layers_i_cells_t_w)
#|       v9 = tanh(v8)
#|       v10 = const(1.5, f32)
#|       v11 = add(v9, v10)
#|       return v11, v9
#|     }
#|     v26 = const([0.25, 0.5, 2.0, 1.0][i], f32)
#|     v27 = mul(v25, v26)
#|     return v27, v9s[1]
#|   }
#|   z = add(v17s[0], v17s[3])
#| }
#|
#| graph carried(a: f32[B, 8], b: f32[B, 8]) -> (c: f32[B, 8], d: f32[B, 8], e: f32[B, 8]) {
#|   v2 = const(2.0, f32)
#|   scale = sqrt(v2)
#|   m = add(a, b)
#|   items = [a, b, m]
#|   c, d, v5s = loop i in 1:7:2 with p = a, q = b {
#|     v5 = exp(p)
#|     v6 = mul(v5, scale)
#|     v7 = const([1.0, 3.0, 5.0][(i - 1) / 2], f32)
#|     v8 = mul(items[(i - 1) / 2], v7)
#|     v9 = sub(v6, v8)
#|     return q, v9, v5
#|   }
#|   _, v23 = loop i_1 in 0:3 with pair = c, pair_1 = a {
#|     v20 = mul(pair, scale)
#|     v21 = add(pair_1, pair)
#|     return v21, v20
#|   }
#|   e = add(v23, v5s[0])
#| }
#|
#| graph shared(x: f32[B, 8]) -> (y: f32[B, 8]) {
#|   first, v3s = loop i in 0:3 with h = x {
#|     v1 = iota([8], axis=0)
#|     v2 = cast(v1, f32)
#|     v3 = exp(v2)
#|     v4 = mul(h, v3)
#|     return v4, v3
#|   }
#|   y = loop i_1 in 0:3 with h_1 = first {
#|     v7 = sub(h_1, v3s[0])
#|     return v7
#|   }
#| }
#|
#| graph unlike(x: f32[B, 8], w: f32[8, 8]) -> (y: f32[B, 8], z: f32[B, 8]) {
#|   v2 = matmul(x, w)
#|   v3 = add(v2, x)
#|   v4 = matmul(v3, w)
#|   v5 = matmul(v4, w)
#|   y = add(v5, v4)
#|   v7 = sin(x)
#|   v8 = sin(v7)
#|   v9 = const(2.0, f32)
#|   z = mul(v8, v9)
#| }
#|
#| graph longer(x: f32[B, 8], a: f32[B, 8], b: f32[B, 8]) -> (y: f32[B, 8], z: f32[B, 8]) {
#|   items = [a, b]
#|   y = loop i in 0:2 with h = x {
#|     v3 = exp(items[i])
#|     v4 = add(h, v3)
#|     return v4
#|   }
#|   items_1 = [a, b, x, y]
#|   z = loop i_1 in 0:4 with h_1 = x {
#|     v9 = exp(items_1[i_1])
#|     z = add(h_1, v9)
#|     return z
#|   }
#| }
