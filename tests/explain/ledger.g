# The ledger of --explain --json, in ledger.json: verdicts of every kind in two small graphs.

dim B in 1..4096

graph rows(x: f32[B, 256], r: f32[B, 256]) -> (h: f32[B, 256], s: f32[256]) {
  h = x + r
  p = softmax(h, axis=1)
  s = sum(p, axis=0)
}

graph gated(x: bf16[512, 256], a: bf16[256, 1024], b: bf16[256, 1024]) -> (y: bf16[512, 1024]) {
  y = silu(x @ a) * (x @ b)
}
