# Reductions of two rows: docs/REDUCTIONS.md.
graph reductions() -> (all_of: f32[], rows: f32[2], columns: f32[1, 3], place: i32[], places: i32[2], spread: f32[2],
                       sample: f32[2], length: f32[2], safe: f32[2], middle: f32[]) {
  x = tensor([[1.0, 5.0, 3.0], [4.0, -2.0, 4.0]])
  all_of = sum(x)
  rows = mean(x, axis=1)
  columns = max(x, axis=0, keep=true)
  place = argmax(x)
  places = argmin(x, axis=1)
  spread = std(x, axis=1)
  sample = std(x, axis=1, correction=1)
  length = norm(x, axis=1)
  safe = logsumexp(x * 100.0, axis=1)
  middle = median(x, axis=none)
}
