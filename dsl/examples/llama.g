# A Llama-shaped decoder of 32 layers: tokens in, logits of the next token out. Norms, rotary embedding,
# grouped-query causal attention, gated feed-forward layers. Params have the names of its checkpoints,
# and weights their layout, [outputs, inputs]. The sizes below are small enough for tests; those of
# Llama 3 8B are V = 128256, H = 32, G = 8, C = 128, F = 14336.
weights "llama.safetensors"

dim B in 1..64
dim T in 1..2048
dim L = 32     # layers
dim V = 256    # tokens
dim H = 4      # heads of queries
dim G = 2      # heads of keys and values
dim C = 16     # channels of a head
dim D = H * C
dim F = 160

def project(x, n) {
  param weight: bf16[n, dim(x, -1)]
  return x @ transpose(weight)
}
def norm(x) {
  param weight: bf16[D]
  return rmsnorm(x, weight, eps=1e-5)
}

# [B, T, heads * C] to a matrix per head: [B, heads, T, C].
def heads(x) = transpose(reshape(x, [B, T, dim(x, 2) / C, C]), perm=[0, 2, 1, 3])

# Turns each pair of channels c and c + C/2 at place t by t / 500000^(2c/C).
def rotary(x) {
  place = cast(iota([T, C / 2], axis=0), f32)
  speed = exp(cast(iota([T, C / 2], axis=1), f32) * (-2.0 * 13.122363 / C))
  a, b = split(cast(x, f32), 2, axis=3)
  cos_t = cos(place * speed)
  sin_t = sin(place * speed)
  return cast(concat([a * cos_t - b * sin_t, b * cos_t + a * sin_t], axis=3), bf16)
}

# Each head of keys and values serves H / G heads of queries.
def self_attention(x) {
  q = rotary(heads(project(x, D) as "q_proj"))
  k = rotary(heads(project(x, G * C) as "k_proj"))
  v = heads(project(x, G * C) as "v_proj")
  a = attention(q, k, v, is_causal=true, enable_gqa=true)
  merged = transpose(a, perm=[0, 2, 1, 3])
  return project(reshape(merged, [B, T, D]), D) as "o_proj"
}

def mlp(x) {
  h = silu(project(x, F) as "gate_proj") * project(x, F) as "up_proj"
  return project(h, D) as "down_proj"
}

def layer(x) {
  h = x + self_attention(norm(x) as "input_layernorm") as "self_attn"
  return h + mlp(norm(h) as "post_attention_layernorm") as "mlp"
}

graph llama(tokens: i32[B, T]) -> (logits: bf16[B, V]) {
  param embed: bf16[V, D] = "model.embed_tokens.weight"
  h = loop i in 0:L with h = gather(embed, tokens, axis=0) {
    return layer(h) as "model.layers.{i}"
  }
  last = norm(h[:, T - 1]) as "model.norm"
  logits = project(last, V) as "lm_head"
}
