# The product's operand is another reduction.
graph mean_of_rows(x: f32[8, 4, 16], w: f32[16, 8]) -> (y: f32[8, 8]) {
  online {
    # error@+1 online: the `online` block has a `mean`, but no softmax whose axis a product contracts
    y = mean(x, axis=1) @ w
  }
}
