# One product for queries, keys and values, each stored by heads where it is made.
dim T in 1..65536

graph split_heads(x: bf16[T, 64], w: bf16[64, 384]) -> (q: bf16[2, T, 64], k: bf16[2, T, 64], v: bf16[2, T, 64]) {
  a, b, c = split(x @ w, 3, axis=1)
  q = transpose(reshape(a, [T, 2, 64]), perm=[1, 0, 2]) * 0.125
  k = transpose(reshape(b, [T, 2, 64]), perm=[1, 0, 2])
  v = transpose(reshape(c, [T, 2, 64]), perm=[1, 0, 2])
}
