graph g(x: f32[4]) -> (y: f32[4]) {
  # error@+1 bad-token: character that no token begins with
  a = x $ 2
  # error@+1 bad-token: a name cannot begin with a digit
  b = x * 2x
  # error@+1 bad-token: a name cannot begin with a digit
  f = x * 0xfg
  # error@+1 bad-token: integer larger than 2^62
  h = x[0x4000000000000001]
  # error@+1 bad-token: string without a closing quote
  c = gelu(x, approximate="tanh)
  # error@+1 bad-token: a string is written in double quotes
  q = gelu(x, approximate='tanh')
  # error@+1 bad-token: integer larger than 2^62
  d = x[99999999999999999999]
  # error@+1 bad-token: control character or backslash in a string
  e = gelu(x, approximate="\n")
  # error@+1 bad-token: character that no token begins with
  é = x
  y = a + b + c + d + e
}
