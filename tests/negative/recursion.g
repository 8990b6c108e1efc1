def a(x) = b(x)
def b(x) = c(x)
# error@+1 recursion: def `a` calls itself: a <- c <- b <- a (note: in this call of `c`
def c(x) = a(x)
graph g(x: f32[8]) -> (y: f32[8]) {
  y = a(x)
}
