# Random numbers by a counter

# Ten rounds of Philox4x32, as Random123 has them: the four words of a counter become four random words, all of
# them u32. The key is u32[2].
def philox(key, c0, c1, c2, c3) {
  k = reshape(key if (dtype(key) == u32 if kind(key) == "tensor" else false) else error("`key` must be a tensor u32[2]; `shape` comes after it"), [2])
  w0, w1, w2, w3 = loop i in 0:10 with a = c0, b = c1, c = c2, d = c3 {
    k0 = const(i * 2654435769 % 4294967296, u32) + k[0]
    k1 = const(i * 3144134277 % 4294967296, u32) + k[1]
    p = cast(a, i64) * 3528531795
    q = cast(c, i64) * 3449720151
    return cast(q >> 32, u32) ^ b ^ k0, cast(q, u32), cast(p >> 32, u32) ^ d ^ k1, cast(p, u32)
  }
  return w0, w1, w2, w3
}

# The four random words of each element, u32 tensors of the shape. The counter is the element's number in
# row-major order (words 0 and 1) and the number `stream` (word 2), so that an element's words depend on nothing
# else: targets, tiles and threads do not change them.
def random_words(key, shape, stream=0) {
  n = loop k in 0:len(shape if is_list(shape) else error("`shape` must be a list, such as [2, 3], behind `key`")) with n = 1 { return n * shape[k] }
  e = reshape(iota([n], axis=0, dtype=i64), shape)
  return philox(key, cast(e, u32), cast(e >> 32, u32), const(stream, u32), const(0, u32))
}

# Uniform in [0, 1), f32 multiples of 2^-24. `key` is u32[2]; the same key, stream and shape give the same bits on
# every target. Another `stream`, a number, gives other numbers of the same key.
def rand(key, shape, stream=0) {
  w, _, _, _ = random_words(key, shape, stream=stream)
  return cast(w >> 8, f32) * 5.9604644775390625e-08
}

# Normal with mean 0 and variance 1, f32, by Box and Muller: `sqrt(-2 * log(u)) * cos(v)`. Of an element's words,
# u is 2^-32 (word 0 + 1), rounded to f32, and v is pi (2^-31 word 1 - 1). With strict numerics the result is
# within 1e-5 of the formula's value, and at most 6.67 from 0.
def randn(key, shape, stream=0) {
  u, v, _, _ = random_words(key, shape, stream=stream)
  r = sqrt(log(cast(cast(u, i64) + 1, f32) * 2.3283064365386962890625e-10) * -2)
  return r * cos(cast(cast(v, i64) - 2147483648, f32) * 1.4629180792671596e-9)
}

# Integers from `low` to before `high`, two numbers less than 2^31 apart, i32. No value is likelier than another
# by more than 2^-32.
def randint(key, shape, low, high, stream=0) {
  is_good = most(high - low) > 0 if kind(low) == "integer" && kind(high) == "integer" else true
  extents = shape if is_good else error("`low` must be less than `high`")
  w, _, _, _ = random_words(key, extents, stream=stream)
  return cast((cast(w, i64) * (high - low) >> 32) + low, i32)
}

# 1 with the probability that the tensor `p` has for each element, else 0, in the dtype of `p`.
def bernoulli(p, key, stream=0) = cast(rand(key, p.shape, stream=stream) < cast(p, f32), dtype(p))

# Each element 0 with probability `p`, a number, else `x / (1 - p)`, as in training. `key` must be given.
def dropout(x, p=0.5, key=none, stream=0) {
  z = cast(x, compute(x))
  probability = p if 0 <= p && p <= 1 else error("`p` is a probability, 0 to 1")
  given = error("`dropout` misses its argument `key`, u32[2]") if key == none else key
  kept = rand(given, x.shape, stream=stream) >= probability
  return cast(where(kept, z / (1.0 - p), 0), dtype(x))
}
