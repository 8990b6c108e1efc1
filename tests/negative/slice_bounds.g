dim B in 1..64
dim H in 8..64
graph g(x: f32[B, 12], z: f32[H]) -> (y: f32[B, 12]) {
  # error@+1 slice-bounds: end of the slice out of range: 13 is more than 12 (note: `x` is f32[B, 12]
  a = x[:, :13]
  # error@+1 slice-bounds: index out of range: 12 is more than 11
  b = x[:, 12]
  # error@+1 slice-bounds: index out of range: it lies at -1
  c = x[:, -13]
  # error@+1 slice-bounds: begin of the slice out of range: 5 is more than 4
  d = x[:, 5:4]
  # error@+1 slice-bounds: begin of the slice may be out of range: 2 <= B is not known to hold for all dims (help: Declare `dim B in 2..64`.
  e = x[2:]
  # error@+1 slice-bounds: end of the slice may be out of range: 9 <= H is not known to hold for all dims (note: `H` ranges over 8..64
  f = z[:9]
  h = z[:8]
  # error@+1 slice-bounds: index 2 of a list of 2
  i = x.shape[2]
  # error@+1 slice-bounds: end of the slice out of range: 13 is more than 12
  j = slice(x, begin=[0, 3], shape=[B, 10])
  # error@+1 slice-bounds: begin of the slice out of range: it lies at -1
  k = slice(x, begin=[0, -1], shape=[B, 10])
  # error@+1 slice-bounds: begin of the slice may be out of range: H - 9 can be as low as -1
  l = z[H - 9:]
  # error@+1 slice-bounds: begin of the slice out of range: 12 is more than 11
  m = x[:, 12:3:-1]
  # error@+1 slice-bounds: end of the slice out of range: 5 is more than 4
  n = x[:, 4:5:-1]
  # error@+1 slice-bounds: begin of the slice may be out of range: 9 <= H - 1 is not known to hold
  o = z[9::-3]
  # error@+1 slice-bounds: last element of the slice out of range: it lies at -1
  p = slice(x, begin=[0, 3], shape=[B, 3], step=[1, -2])
  y = x + sum(h)
}
