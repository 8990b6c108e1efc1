# Functions of numbers

# 2 sinh(z / 2) of |z| <= 1, by its series: e^z - 1 is its product with e^(z/2).
def two_sinh_half(z) {
  s = z * z
  far = ((4.6674583324095559e-17 * s + 3.9206649992240267e-14) * s + 2.4464949595157930e-11) * s + 1.0764577821869489e-8
  wide = (far * s + 3.1001984126984127e-6) * s + 5.2083333333333333e-4
  r = wide if dtype(z) == f64 else s * 3.116345279e-6 + 5.20827278e-4
  return (r * s + 0.041666666666666664) * s * z + z
}

# e^(z/2), as 2^(z/2 * log2 e): near 0 the product is precise, and below it the power is small beside 1.
def exp_half(z) = exp2(z * 0.72134752044448170368)

# e^z - 1 as precise as f16: within 2^-14 of itself.
def expm1_narrow(z) = where(abs(z) < 0.015625, (z * 0.5 + 1) * z, exp2(z * 1.4426950408889634074) - 1)

# e^x - 1, accurate where x is near 0.
def expm1(x) {
  z = cast(x, compute(x))
  wide = where(abs(z) < 1, two_sinh_half(z) * exp_half(z), exp(z) - 1)
  return cast(expm1_narrow(z) if dtype(x) != dtype(z) else wide, dtype(x))
}

# e^z - 1 of z <= 0, by one power: of greater z its square loses some bits.
def expm1_below(z, narrow) {
  e = exp_half(z)
  return expm1_narrow(z) if narrow else where(z > -1, two_sinh_half(z) * e, e * e - 1)
}

# log(1 + x), accurate where x is near 0.
def log1p(x) {
  z = cast(x, compute(x))
  u = z + 1
  return cast(where(u == 1 || z == inf, z, log(u) * (z / (u - 1))), dtype(x))
}

# Logarithm to base 10.
def log10(x) {
  z = cast(x, compute(x))
  return cast(log2(z) * 0.30102999566398119521, dtype(x))
}

# Tangent of radians.
def tan(x) {
  z = cast(x, compute(x))
  return cast(sin(z) / cos(z), dtype(x))
}

# Arc sine.
def asin(x) {
  z = cast(x, compute(x))
  return cast(atan(z / sqrt((1 - z) * (1 + z))), dtype(x))
}

# Arc cosine.
def acos(x) {
  z = cast(x, compute(x))
  return cast(2 * atan(sqrt((1 - z) / (1 + z))), dtype(x))
}

# Arc tangent. The nearest of the angles of 0, 1 and infinity, and a polynomial of the difference.
def atan(x) {
  z = cast(x, compute(x))
  a = abs(z)
  is_low = a < 0.41421356237309504880
  is_high = a > 2.4142135623730950488
  top = where(is_low, a, where(is_high, -1.0, a - 1))
  t = top / where(is_low, 1.0, where(is_high, a, a + 1))
  s = t * t
  p0 = s * -0.01391565727738052021 + 0.03063316236903660885
  p1 = (p0 * s - 0.04104326564538423423) * s + 0.04719367883086261886
  p2 = (p1 * s - 0.05258037303029063421) * s + 0.05881924814475386899
  p3 = (p2 * s - 0.06666641989930425033) * s + 0.07692306734642371194
  p4 = (p3 * s - 0.09090909066971316474) * s + 0.1111111111075408185
  p5 = (p4 * s - 0.1428571428571151302) * s + 0.1999999999999999152
  p6 = p5 * s - 0.3333333333333333333
  rest = p6 * s * t + t
  above = where(is_high, rest + 1.57079632679489661923, rest + 0.78539816339744830962)
  return cast(sign(z) * where(is_low, rest, above), dtype(x))
}

# The angle of the point (x, y) from the x axis, -pi to pi. The signs of zeros count, as in C. One of the two may be a
# number.
def atan2(y, x) {
  b = as_computed(as_operand(y, x))
  a = as_computed(as_operand(x, y))
  m = abs(b)
  n = abs(a)
  both = where(m == n, 1.0, m / n)
  r = atan(where(m == 0 && n == 0, 0.0, both))
  isnt = a != a || b != b
  angle = where(a < 0 || 1 / a < 0, 3.14159265358979323846 - r, r)
  return cast(where(isnt, a + b, where(b < 0 || 1 / b < 0, -angle, angle)), dtype(as_operand(y, x)))
}

# Hyperbolic sine.
def sinh(x) {
  z = cast(x, compute(x))
  a = abs(z)
  e = expm1(a)
  h = exp(a * 0.5)
  return cast(sign(z) * where(a < 20, (e + e / (e + 1)) * 0.5, h * 0.5 * h), dtype(x))
}

# Hyperbolic cosine.
def cosh(x) {
  z = cast(x, compute(x))
  h = exp(abs(z) * 0.5)
  half = h * 0.5 * h
  return cast(half + 0.25 / half, dtype(x))
}

# Inverse of the hyperbolic sine.
def asinh(x) {
  z = cast(x, compute(x))
  a = abs(z)
  near = log1p(a + a * a / (1 + sqrt(a * a + 1)))
  return cast(sign(z) * where(a < 1e9, near, log(a) + 0.69314718055994530942), dtype(x))
}

# Inverse of the hyperbolic cosine, at least 0.
def acosh(x) {
  z = cast(x, compute(x))
  t = z - 1
  near = where(t < 0, nan, log1p(t + sqrt(t * (z + 1))))
  return cast(where(z < 1e9, near, log(z) + 0.69314718055994530942), dtype(x))
}

# Inverse of the hyperbolic tangent.
def atanh(x) {
  z = cast(x, compute(x))
  a = abs(z)
  return cast(sign(z) * 0.5 * log1p(2 * a / (1 - a)), dtype(x))
}

# The cube root, negative of a negative number.
def cbrt(x) {
  z = cast(x, compute(x))
  y = pow(abs(z), 0.33333333333333333333)
  root = y - (y - abs(z) / (y * y)) / 3
  return cast(where(z == 0 || abs(z) == inf, z, sign(z) * root), dtype(x))
}

# sqrt(a * a + b * b), without overflow on the way. One of the two may be a number.
def hypot(a, b) {
  p = abs(as_computed(as_operand(a, b)))
  q = abs(as_computed(as_operand(b, a)))
  m = maximum(p, q)
  n = minimum(p, q)
  s = n / where(m == 0, 1.0, m)
  return cast(where(p == inf || q == inf, inf, m * sqrt(1 + s * s)), dtype(as_operand(a, b)))
}

# a / b rounded down, as NumPy and PyTorch have it: of floats the exact quotient, which may lie below the rounded one. One
# of the two may be a number.
def floor_divide(a, b) {
  p = as_computed(as_operand(a, b))
  q = as_computed(as_operand(b, a))
  r = p % q
  rounded_up = cast(r != 0 && (r < 0) != (q < 0), dtype(p))
  return cast(p / q - rounded_up if is_whole(p) else floor_of_floats(p, q, (p - r) / q - rounded_up), dtype(as_operand(a, b)))
}

# `floor_divide` of floats, of which `n` is the rounded quotient without its rest.
def floor_of_floats(p, q, n) {
  m = floor(n)
  return where(q == 0, p / q, where(n - m > 0.5, m + 1, m))
}

# The integer part.
def trunc(x) = x if is_whole(x) else where(x < 0, ceil(x), floor(x))

# Whether x has a dtype of floats that ops take.
def is_float(x) = dtype(x) == f32 || dtype(x) == f16 || dtype(x) == bf16 || dtype(x) == f64

# Whether an element is NaN.
def isnan(x) = x != x

# Whether x is a tensor of integers.
def is_whole(x) {
  is_tensor = kind(x) == "tensor"
  return !is_float(x) && dtype(x) != bool && dtype(x) != f8e4m3 && dtype(x) != f8e5m2 if is_tensor else false
}

# A number as a tensor of the dtype of b, which is a tensor; a tensor as it is.
def as_operand(a, b) = a if kind(a) == "tensor" else const(a, dtype(b))

# x in the dtype in which its ops are computed.
def as_computed(x) = cast(x, compute(x))

# The least number of a dtype.
def lowest(dtype) {
  narrow = -128 if dtype == i8 else -32768 if dtype == i16 else 0
  least = -9223372036854775808.0 if dtype == i64 else -2147483648 if dtype == i32 else narrow
  is_unsigned = dtype == u8 || dtype == u16 || dtype == u32
  return -inf if least == 0 && !is_unsigned else least
}

# Whether an element is infinite.
def isinf(x) = x != x if is_whole(x) else abs(x) == inf

# Whether an element is neither infinite nor NaN.
def isfinite(x) = x == x if is_whole(x) else abs(x) < inf
