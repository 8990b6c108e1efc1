dim B in 1..64

graph model(args_0: f32[B, 8], args_1: i64[3]) -> (add: f32[B, 8], full: i64[3], index: f32[3], rsub: i64[3], select_scatter: f32[B, 8]) {
  mul = args_0 * cast(iota([B + 1], dtype=i64)[B], f32)
  add = mul + cast(iota([(B % 4) + 1], dtype=i64)[(B % 4)], f32)
  full = expand(iota([(2*B) + 1], dtype=i64)[(2*B)], [3])
  remainder = where(((args_1 % const(8, i64)) != 0) && (((args_1 % const(8, i64)) < 0) != (const(8, i64) < 0)), (args_1 % const(8, i64)) + const(8, i64), (args_1 % const(8, i64)))
  index = gather(reshape(args_0, [-1]), (where(args_1 < 0, args_1 + iota([B + 1], dtype=i64)[B], args_1)) * 8 + where(remainder < 0, remainder + 8, remainder), axis=0)
  rsub = iota([B + 1], dtype=i64)[B] - args_1
  select = args_0[0]
  select_scatter = where(iota([B, 8], axis=0) == cast(iota([B - 1 + 1], dtype=i64)[B - 1], i32), reshape(select, [1, 8]), args_0)
}
