dim E in 1..8
def same(x) = x
