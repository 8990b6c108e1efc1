# Where contracts may stand, and their words.

def f(x) {
  # error@+1 misplaced: `fuse must` belongs directly in a graph
  fuse must { y = relu(x) }
  return y
}

graph g(x: f32[8]) -> (y: f32[8], fuse: f32[8]) {
  fuse = f(x)
  # error@+1 syntax: unexpected name after `fuse`, expected `must` or `never`
  fuse always {
    a = relu(x)
  }
  kernel k {
    # error@+1 misplaced: `fuse never` belongs directly in a graph
    fuse never { b = -a }
  }
  fuse never {
    y = a + b
    # error@+1 misplaced: `kernel` belongs directly in a graph
    kernel m { z = -y }
  }
}
