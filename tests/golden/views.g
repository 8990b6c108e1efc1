# Views that change nothing add no node; reductions over no axes neither.
dim B in 1..64
graph views(x: f32[B, 8], i: i32[3, 2], s: f32) -> (a: f32[B, 8], b: f32[B, 3, 2], c: f32[4, B, 2],
                                                    d: f32[2 * B, 9], e: f32, j: i32[B, 1]) {
  a = reshape(transpose(pad(x[:, :], low=[0, 0], high=[0, 0]), perm=[0, 1]), [B, -1])
  b = gather(x, i, axis=-1)
  c = transpose(reshape(x, [-1, 4, 2]), perm=[1, 0, 2])
  d = pad(concat([x, expand(x[:1], [B, 8])]), low=[0, 1], high=[0, 0], value=nan)
  e = sum(sum(s), axis=[]) + mean(x, axis=none)
  j = argmax(x, axis=1, keep=true)
}
#| dim B in 1..64
#|
#| graph views(x: f32[B, 8], i: i32[3, 2], s: f32[]) -> (a: f32[B, 8], b: f32[B, 3, 2], c: f32[4, B, 2], d: f32[2*B, 9], e: f32[], j: i32[B, 1]) {
#|   b = gather(x, i, axis=1)
#|   v4 = reshape(x, [B, 4, 2])
#|   c = transpose(v4, perm=[1, 0, 2])
#|   v6 = slice(x, begin=[0, 0], shape=[1, 8])
#|   v7 = expand(v6, [B, 8])
#|   v8 = concat([x, v7], axis=0)
#|   d = pad(v8, low=[0, 1], high=[0, 0], value=nan)
#|   v10 = mean(x, axis=[0, 1])
#|   e = add(s, v10)
#|   j = argmax(x, axis=1, keep=true)
#|   a = x
#| }
