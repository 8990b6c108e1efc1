dim B in 1..64
dim H in 8..64
dim W in 8..64

graph model(args_0: f32[B, 2, H, W]) -> (upsample_bilinear2d: f32[B, 2, H, W], upsample_bilinear2d_1: f32[B, 2, H, W], upsample_bilinear2d_2: f32[B, 2, (3*H / 2), (2*W)], upsample_nearest2d: f32[B, 2, (3*H / 4), (3*W / 4)], upsample_bilinear2d_3: f32[B, 2, (3*H / 2), (3*W / 2)], roll: f32[B, 2, H, W], roll_1: f32[B, 2, H, W], roll_2: f32[B, 2, H, W], flip: f32[B, 2, H, W]) {
  avg_pool2d = avg_pool2d(args_0, [2, 2], stride=[2, 2], padding=[0, 0], count_include_pad=true)
  upsample_bilinear2d = interpolate(avg_pool2d, size=[H, W], mode="bilinear")
  avg_pool2d_1 = avg_pool2d(args_0, [2, 2], stride=[2, 2], padding=[0, 0], count_include_pad=true)
  upsample_bilinear2d_1 = interpolate(avg_pool2d_1, size=[H, W], mode="bilinear", align_corners=true)
  upsample_bilinear2d_2 = cast(interpolate_between(interpolate_between(args_0, 2, (3*H / 2), 1.5, false), 3, (2*W), 2.0, false), f32)
  upsample_nearest2d = cast(interpolate_nearest_by(interpolate_nearest_by(args_0, 2, (3*H / 4), 0.75, false), 3, (3*W / 4), 0.75, false), f32)
  upsample_bilinear2d_3 = interpolate(args_0, size=[(3*H / 2), (3*W / 2)], mode="bilinear", align_corners=true)
  roll = roll(args_0, [3, -1], [2, 3])
  roll_1 = roll(args_0, [(H / 2)], [2])
  roll_2 = roll(args_0, [5])
  flip = flip(flip(args_0, 2), 0)
}
