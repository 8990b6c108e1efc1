# The decoder of llama.g, a step at a time: one token in, its keys and values into a cache, logits of the
# next token out. The params are the same. A caller that binds one buffer to `keys` and `new_keys`, and one
# to `values` and `new_values`, has its cache updated in place, and a step writes what the token adds.
# embed/decode.c is such a caller.
weights "llama.safetensors"

dim B in 1..64
dim S in 1..2048  # places of the cache
dim L = 32        # layers
dim V = 256       # tokens
dim H = 4         # heads of queries
dim G = 2         # heads of keys and values
dim C = 16        # channels of a head
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

# Turns each pair of channels c and c + C/2 of [B, heads, C] by at / 500000^(2c/C).
def rotary(x, at) {
  speed = exp(cast(iota([C / 2]), f32) * (-2.0 * 13.122363 / C))
  cos_t = cos(cast(at, f32) * speed)
  sin_t = sin(cast(at, f32) * speed)
  a, b = split(cast(x, f32), 2, axis=2)
  return cast(concat([a * cos_t - b * sin_t, b * cos_t + a * sin_t], axis=2), bf16)
}

# Puts [B, G * C] into place `at` of layer i of the cache, [L, B, G, S, C].
def put(cache, x, i, at) = dynamic_update_slice(cache, reshape(x, [1, B, G, 1, C]), [i, 0, 0, at, 0])

# Each head of keys and values serves H / G heads of queries.
def self_attention(x, keys, values, i, at) {
  q = rotary(reshape(project(x, D) as "q_proj", [B, H, C]), at)
  k = rotary(reshape(project(x, G * C) as "k_proj", [B, G, C]), at)
  v = project(x, G * C) as "v_proj"
  new_keys = put(keys, k, i, at)
  new_values = put(values, v, i, at)
  is_past = reshape(iota([S]) <= at, [1, S])
  a = attention(unsqueeze(q, 2), new_keys[i], new_values[i], mask=is_past, enable_gqa=true)
  y = project(reshape(a, [B, D]), D) as "o_proj"
  return y, new_keys, new_values
}

def mlp(x) {
  h = silu(project(x, F) as "gate_proj") * project(x, F) as "up_proj"
  return project(h, D) as "down_proj"
}

def layer(x, keys, values, i, at) {
  a, new_keys, new_values = self_attention(norm(x) as "input_layernorm", keys, values, i, at) as "self_attn"
  h = x + a
  y = h + mlp(norm(h) as "post_attention_layernorm") as "mlp"
  return y, new_keys, new_values
}

graph step(tokens: i32[B], at: i32, keys: bf16[L, B, G, S, C], values: bf16[L, B, G, S, C]) -> (logits: bf16[B, V], new_keys: bf16[L, B, G, S, C], new_values: bf16[L, B, G, S, C]) {
  param embed: bf16[V, D] = "model.embed_tokens.weight"
  h, new_keys, new_values = loop i in 0:L with h = gather(embed, tokens, axis=0), k = keys, v = values {
    y, next_k, next_v = layer(h, k, v, i, at) as "model.layers.{i}"
    return y, next_k, next_v
  }
  logits = project(norm(h) as "model.norm", V) as "lm_head"
}
