# The price of European options. A `def` is a function over tensors of any shape and dtype,
# expanded where it is called; literals take the dtype of the tensor beside them.
dim N in 1..67108864

# The normal distribution's cumulative function.
def normal(x) = 0.5 * (1.0 + erf(x * 0.70710678118654752))

graph blackscholes(spot: f32[N], strike: f32[N], years: f32[N], rate: f32, sigma: f32)
    -> (call: f32[N], put: f32[N]) {
  spread = sigma * sqrt(years)
  d1 = (log(spot / strike) + (rate + sigma * sigma * 0.5) * years) / spread
  d2 = d1 - spread
  discounted = strike * exp(-rate * years)
  call = spot * normal(d1) - discounted * normal(d2)
  put = discounted * normal(-d2) - spot * normal(-d1)
}
