# One block of a decoder: causal attention and a gated feed-forward layer, each behind an rmsnorm
# and added to its input. Attention is spelled out in matrix products, so scores are a tensor of
# [B, H, T, T]. Splitting and merging heads and turning keys are views; the mask is two index
# tensors and a comparison, and nothing is stored for it.
dim B in 1..256
dim T in 1..4096
dim H = 4
dim C = 64
dim D = H * C
dim F = 3 * D

# [B, T, D], with the heads side by side, to one matrix per head: [B, H, T, C].
def heads(x) = transpose(reshape(x, [B, T, H, C]), perm=[0, 2, 1, 3])

graph block(x: bf16[B, T, D]) -> (y: bf16[B, T, D]) {
  param norm1: bf16[D]  = "attention_norm.weight"
  param wq: bf16[D, D]  = "q.weight"
  param wk: bf16[D, D]  = "k.weight"
  param wv: bf16[D, D]  = "v.weight"
  param wo: bf16[D, D]  = "out.weight"
  param norm2: bf16[D]  = "ffn_norm.weight"
  param gate: bf16[D, F] = "gate.weight"
  param up: bf16[D, F]   = "up.weight"
  param down: bf16[F, D] = "down.weight"

  n = rmsnorm(x, norm1)
  q = heads(n @ wq)
  k = heads(n @ wk)
  v = heads(n @ wv)

  scores = (q @ transpose(k, perm=[0, 1, 3, 2])) * 0.125  # 1 / sqrt(C)
  is_past = iota([T, T], axis=1) <= iota([T, T], axis=0)
  a = softmax(where(is_past, scores, -inf)) @ v
  h = x + reshape(transpose(a, perm=[0, 2, 1, 3]), [B, T, D]) @ wo

  m = rmsnorm(h, norm2)
  y = h + (silu(m @ gate) * (m @ up)) @ down
}
