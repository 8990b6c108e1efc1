weights "a.safetensors"
dim D = 9
include "../bad_include.g"
include "../include/../include/second.g"
def f(x) = x + x[1:]
def g(x) = x
graph h(x: f32[1]) -> (y: f32[1]) { y = x }
