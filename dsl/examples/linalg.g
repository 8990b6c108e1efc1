# Products of small matrices: docs/LINALG.md.
graph products() -> (y: f32[2, 3], rows: f32[2], table: f32[2, 2], bytes: i32[1, 2], trace_of: f32[]) {
  x = tensor([[1.0, 2.0], [3.0, 4.0]])
  weight = tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
  y = linear(x, weight, tensor([0.5, 0.5, 0.0]))
  rows = einsum("ij,ij->i", x, x)
  table = outer(x[0], x[1])
  bytes = matmul(tensor([[200, 100]], u8), tensor([[-1, 2], [1, -3]], i8), out=i32)
  trace_of = trace(x)
}
