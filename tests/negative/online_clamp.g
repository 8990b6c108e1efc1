graph g(x: f32[5, 9], v: i8[9, 3], w: i8[9, 3]) -> (y: i32[5, 3], z: i8[5, 3], u: i32[5, 3]) {
  online {
    a = max(abs(x), axis=1, keep=true)
    q = cast(clamp(round(x / a * 127), -100, 100), i8)
    # error@+1 online: a clamp changes rows that their greatest absolute value divides (help: Let it keep all up to the scale, or put it before the quotient.
    y = matmul(q, v, out=i32)
  }
  online {
    b = max(abs(x), axis=1, keep=true)
    # error@+1 online: quantised rows do not go with the dtypes of their product (help: Write `out=i32`.
    z = cast(round(x / b * 127), i8) @ v
  }
  online {
    # error@+1 online: the `online` block has a `max`, but no softmax whose axis a product contracts
    c = max(x, axis=1, keep=true)
    u = matmul(cast(round(x / c * 127), i8), w, out=i32)
  }
}
