"""Errors of the elementary functions and activations on a GPU, in units in the last place.

    make peers-kit                                        # here
    python3 gpu_ulp.py LIB [STEP]                         # there, beside fusert.py; LIB: libfusec.so ...

Every float whose bits are a multiple of STEP (1: all 2^32), and every bf16 and f16, is given to
each function and compared with PyTorch's result in float64. Prints the largest error, in ULP of
the dtype, and where it is; fails when one passes the bound of docs/OPS.md.
"""
import sys

import fusert
import torch

CHUNK = 1 << 26
SQRT1_2, SQRT_2_PI = 0.70710678118654752440, 0.79788456080286535588
# name: reference in float64, bound in ULP of f32, absolute error that is allowed instead, and the
# largest |x| that is tried: below -87 silu multiplies a subnormal e^x
FUNCTIONS = {
    "exp": (torch.exp, 4, 0, torch.inf),
    "exp2": (torch.exp2, 4, 0, torch.inf),
    "tanh": (torch.tanh, 4, 0, torch.inf),
    "erf": (torch.erf, 4, 0, torch.inf),
    "sigmoid": (torch.sigmoid, 6, 0, torch.inf),
    "silu": (lambda x: x * torch.sigmoid(x), 6, 0, 87),
    "gelu": (lambda x: 0.5 * x * torch.special.erfc(-x * SQRT1_2), 4, 1e-6, torch.inf),
    "gelu_tanh": (lambda x: x * torch.sigmoid(2 * SQRT_2_PI * (x + 0.044715 * x * x * x)), 4, 1e-6,
                  torch.inf),
}
# torch's type, integers of its size, digits, least exponent; results of 16 bits have 1 ULP
DTYPES = {
    "f32": (torch.float32, torch.int32, 24, -126),
    "f16": (torch.float16, torch.int16, 11, -14),
    "bf16": (torch.bfloat16, torch.int16, 8, -126),
}


def floats(dtype, begin, step):
    """CHUNK floats at most, from the bits `begin` on."""
    kind, integer, _, _ = DTYPES[dtype]
    n_bits = 32 if dtype == "f32" else 16
    bits = torch.arange(begin, min(begin + CHUNK * step, 1 << n_bits), step, device="cuda")
    bits = torch.where(bits >= 1 << (n_bits - 1), bits - (1 << n_bits), bits)
    return bits.to(integer).view(kind)


def errors(got, want, dtype, allowed):
    """In ULP of `want`; 0 where both are NaN or the same, infinite where only one is finite."""
    _, _, digits, least = DTYPES[dtype]
    got = got.double()
    largest = torch.finfo(DTYPES[dtype][0]).max
    exponent = torch.floor(torch.log2(want.abs().clamp(min=2.0 ** least)))
    ulp = torch.exp2(exponent - (digits - 1))
    difference = (got - want).abs()
    error = torch.where(difference <= allowed, 0, difference / ulp)
    overflows = want.abs() > largest
    error = torch.where(overflows & ((got == torch.sign(want) * torch.inf) | (got.abs() == largest)),
                        0, error)
    error = torch.where((got == want) | (got.isnan() & want.isnan()), 0, error)
    return torch.where(error.isnan(), torch.inf, error)


def worst(libraries, name, dtype, step):
    reference, _, allowed, limit = FUNCTIONS[name]
    n_floats, step = (1 << 32, step) if dtype == "f32" else (1 << 16, 1)
    n = min(CHUNK, n_floats // step)
    text = f"graph g(x: {dtype}[{n}]) -> (y: {dtype}[{n}]) {{ y = {name}(x) }}"
    program = libraries.program(libraries.compile(text, "sm_90a", name))
    y = torch.empty(n, dtype=DTYPES[dtype][0], device="cuda")
    most, where = 0.0, 0.0
    for begin in range(0, n_floats, n * step):
        x = floats(dtype, min(begin, n_floats - n * step), step)[:n]  # the last are as many
        run = program.exec({"x": (x.data_ptr(), dtype, [n]), "y": (y.data_ptr(), dtype, [n])})
        torch.cuda.synchronize()
        run.run(0)
        torch.cuda.synchronize()
        run.close()
        for part, result in zip(x.split(1 << 24), y.split(1 << 24)):
            error = errors(result, reference(part.double()), dtype, allowed)
            error = torch.where(part.abs() > limit, 0, error)
            i = int(error.argmax())
            if float(error[i]) > most:
                most, where = float(error[i]), float(part[i])
    program.close()
    return most, where


def main():
    libraries = fusert.Libraries(sys.argv[1])
    step = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    good = True
    for name, (_, bound_f32, _, _) in FUNCTIONS.items():
        line = [f"{name:10}"]
        for dtype in DTYPES:
            bound = bound_f32 if dtype == "f32" else 1
            most, where = worst(libraries, name, dtype, step)
            good = good and most <= bound
            past = "" if most <= bound else f" PAST {bound}"
            line.append(f"{dtype} {most:.3f}{past} at {where!r}")
        print("; ".join(line), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
