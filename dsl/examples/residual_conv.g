# The last block of a residual network for pictures of 32 x 32: two convolutions over images whose
# channels lie innermost (NHWC). A convolution is a matrix product: each row is a pixel's neighbours
# side by side, zeros beyond the border, and its right factor is the weights, tap by tap. Nothing lays
# these rows out in memory: on sm_90a the copy engine fetches them from the image, and bias, relu and
# the residual ride along.
dim B in 1..65536

def conv3x3(x, w) {
  p = pad(x, low=[0, 1, 1, 0], high=[0, 1, 1, 0])
  taps = concat([p[:, :-2, :-2], p[:, :-2, 1:-1], p[:, :-2, 2:],
                 p[:, 1:-1, :-2], p[:, 1:-1, 1:-1], p[:, 1:-1, 2:],
                 p[:, 2:, :-2], p[:, 2:, 1:-1], p[:, 2:, 2:]], axis=3)
  return taps @ w
}

graph residual_conv(x: bf16[B, 8, 8, 64], w1: bf16[576, 64], b1: bf16[64], w2: bf16[576, 64],
                    b2: bf16[64]) -> (y: bf16[B, 8, 8, 64]) {
  h = relu(conv3x3(x, w1) + b1)
  y = relu(conv3x3(h, w2) + b2 + x)
}
