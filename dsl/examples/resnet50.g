# ResNet-50 for inference: images to scores of classes. The params have the names and layouts of
# torchvision's, convolutions [outputs, inputs, k, k]; images and values are [B, H, W, C]. The scale and
# shift of each batch norm follow from params alone, as the layout of weights does: both are computed when
# the weights are loaded. The sizes below are small enough for tests; the network's own are S = 224,
# W = 64, N = 1000.
weights "resnet50.safetensors"

dim B in 1..256
dim S = 32   # rows and columns of an image
dim W = 8    # channels of the first layer
dim N = 10   # classes

def conv(x, n, k=1, stride=1) {
  param weight: f32[n, dim(x, 3), k, k]
  return conv2d_nhwc(x, transpose(weight, perm=[2, 3, 1, 0]), stride=stride, padding=k / 2)
}

def norm(x) {
  param weight: f32[dim(x, 3)]
  param bias: f32[dim(x, 3)]
  param running_mean: f32[dim(x, 3)]
  param running_var: f32[dim(x, 3)]
  scale = weight * rsqrt(running_var + 1e-5)
  return x * scale + (bias - running_mean * scale)
}

def narrow(x, n, stride) {
  a = relu(norm(conv(x, n) as "conv1") as "bn1")
  b = relu(norm(conv(a, n, k=3, stride=stride) as "conv2") as "bn2")
  return norm(conv(b, 4 * n) as "conv3") as "bn3"
}

# `count` blocks, of which the first changes the size.
def stage(x, n, stride, count) {
  short = norm(conv(x, 4 * n, stride=stride) as "0.downsample.0") as "0.downsample.1"
  first = relu(narrow(x, n, stride) as "0" + short)
  return loop i in 1:count with h = first { return relu(narrow(h, n, 1) as "{i}" + h) }
}

graph resnet50(x: f32[B, S, S, 3]) -> (y: f32[B, N]) {
  stem = relu(norm(conv(x, W, k=7, stride=2) as "conv1") as "bn1")
  h = loop s in 0:4 with h = max_pool2d_nhwc(stem, 3, stride=2, padding=1) {
    k = s + 1
    return stage(h, W << s, [1, 2, 2, 2][s], [3, 4, 6, 3][s]) as "layer{k}"
  }
  param weight: f32[N, 32 * W] = "fc.weight"
  param bias: f32[N]           = "fc.bias"
  y = linear(mean(h, axis=[1, 2]), weight, bias)
}
