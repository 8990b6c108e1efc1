dim B in 1..8
graph g(x: f32[8], h: f16[8], i: i32[8]) -> (y: f32[8]) {
  # error@+1 literal-range: the number 1.5, taken as i32, is not an integer
  a = i + 1.5
  # error@+1 literal-range: the number 1e+06, taken as f16, is out of range
  b = h * 1e6
  # error@+1 literal-range: the integer `4294967296`, taken as i32, is out of range
  c = i * 4294967296
  # error@+1 literal-range: the number 1e-12, taken as f16, rounds to 0
  d = h + 1e-12
  # error@+1 literal-range: the dim expression `B`, taken as f32, is known only at run time
  e = x * B
  # error@+1 literal-range: comes from an integer division that was rounded down
  f = x * (1 / 3)
  # error@+1 literal-range: the number inf, taken as i32, is not an integer
  k = where(true, i, inf)
  # error@+1 literal-range: `true`, taken as f32, is no number
  l = x + true
  # error@+1 literal-range: number larger than any f64
  m = x + 1e400
  # error@+1 literal-range: number that rounds to 0 as f64
  n = x * 0.01e-400
  # error@+1 literal-range: the result, in doubles, is out of range
  o = x + 1e308 * 10.0
  # error@+1 literal-range: the result, in doubles, rounds to 0
  p = x + 1e-300 / 1e300
  # error@+1 literal-range: the integer `200`, taken as i8, is out of range
  q = cast(i, i8) * 200
  # error@+1 literal-range: the integer `-1`, taken as u32, is out of range
  r = cast(i, u32) + -1
  # error@+1 literal-range: the number 9.3e+18, taken as i64, is out of range
  s = cast(i, i64) + 9.3e18
  y = x + 0e-400 * 0.0e9 + 4.9e-324 * 0.0
}
