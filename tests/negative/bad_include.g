# error@+3 misplaced: `weights` belongs in the main file, not in one that is included (note: included here
# error@+2 misplaced: a graph belongs in the main file
# error@+1 bad-include: tests/negative/bad_include.g includes itself: tests/negative/bad_include.g <- tests/negative/include/lib.g <- tests/negative/bad_include.g
include "include/lib.g"
# error@+1 bad-include: cannot read tests/negative/include/none.g
include "include/none.g"
# Twice is once.
include "./include/second.g"
# error@+1 redefinition: dim `D` is declared already (note: the first is here
dim D = 8
# error@+1 redefinition: a second def `f` (note: the first is here
def f(x) = x
graph k(x: f32[D]) -> (y: f32[D]) {
  # error@+1 redefinition: `E` is bound already (note: the first binding is here
  E = x
  # error@+1 shape-mismatch: shapes of `add` do not broadcast: (9,) and (8,)
  y = f(x) + g(x)
}
