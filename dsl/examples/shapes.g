# Views of six numbers: docs/SHAPES.md.
graph shapes() -> (turned: i32[3, 2], last: i32[2], mirrored: i32[2, 3], shifted: i32[2, 3], low: i32[2, 3], wide: i32[2, 6],
                   corner: i32[2], many: i32[3]) {
  x = arange(6)
  m = reshape(x, [2, 3])
  turned = transpose(m)
  last = m[:, -1]
  mirrored = flip(m, [0, 1])
  shifted = roll(m, 1, 1)
  low = tril(m)
  wide = concat([m, m + 10], axis=1)
  corner = diag(m, 1)
  many = arange(2, 8, 2)
}
