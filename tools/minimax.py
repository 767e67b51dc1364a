#!/usr/bin/env python3
"""Prints the coefficients of src/kernel/math_*: minimax polynomials, rounded to f32.

usage: tools/minimax.py [NAME...]      needs mpmath; a few minutes for all of them

Each fit is a row of FITS: a function, the interval, the degree and a weight that turns the error of
the polynomial into that of the result, which is printed in units of 2^-24 of it.
"""
import sys

from mpmath import (asinh, atan, atanh, cos, erf, erfc, exp, fabs, factorial, frexp, ldexp, log,
                    log1p, lu_solve, matrix, mp, mpf, nint, pi, sign, sin, sinh, sqrt, tanh)

mp.dps = 40
TINY = mpf(10) ** -25
LN2, LN10, ROOT2 = log(mpf(2)), log(mpf(10)), sqrt(mpf(2))


def f32(x):
    """The nearest f32 to x."""
    if x == 0:
        return mpf(0)
    exponent = max(int(frexp(x)[1]), -125)
    return ldexp(nint(ldexp(x, 24 - exponent)), exponent - 24)


def value(coefficients, x, lowest=0):
    return sum(c * x ** (lowest + k) for k, c in enumerate(coefficients))


def remez(f, lowest, degree, a, b, weight, points=300, rounds=30):
    """Coefficients of x^lowest .. x^degree whose largest weighted error on [a, b] is least."""
    n = degree - lowest + 1
    xs = [(a + b) / 2 - (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * points)) for i in range(points)]
    fs, ws = [f(x) for x in xs], [weight(x) for x in xs]
    chosen = [round(i * (points - 1) / n) for i in range(n + 1)]
    before = None
    for _ in range(rounds):
        system, right = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for row, i in enumerate(chosen):
            for k in range(n):
                system[row, k] = xs[i] ** (lowest + k)
            system[row, n] = (-1) ** row / ws[i]
            right[row] = fs[i]
        coefficients = list(lu_solve(system, right))[:n]
        errors = [w * (y - value(coefficients, x, lowest)) for x, y, w in zip(xs, fs, ws)]
        # The extremes between changes of sign, without the smaller end while there are too many.
        extremes = [0]
        for i in range(1, points):
            if sign(errors[i]) != sign(errors[extremes[-1]]):
                extremes.append(i)
            elif fabs(errors[i]) > fabs(errors[extremes[-1]]):
                extremes[-1] = i
        while len(extremes) > n + 1:
            extremes.pop(0 if fabs(errors[extremes[0]]) < fabs(errors[extremes[-1]]) else -1)
        largest = max(map(fabs, errors))
        if len(extremes) <= n or (before and fabs(largest - before) < largest / 10000):
            break
        chosen, before = extremes, largest
    return coefficients


def fit(f, degree, a, b, weight):
    """The same in f32: a coefficient is rounded, the higher ones are fitted to what it left over."""
    a, b = mpf(a), mpf(b)
    grid = [a + (b - a) * i / 300 for i in range(301)]

    def error(coefficients):
        return max(fabs(weight(x) * (f(x) - value(coefficients, x))) for x in grid)

    done, rest = [], remez(f, 0, degree, a, b, weight)
    for k in range(degree + 1):
        if k > 0:
            again = remez(lambda x: f(x) - value(done, x), k, degree, a, b, weight)
            rest = min(rest, again, key=lambda tail: error(done + tail))
        done.append(f32(rest[0]))
        rest = rest[1:]
    return done, error(done)


def series(terms):
    """A function by its power series, where the closed form would cancel."""
    return lambda x: sum(terms(k) * x ** k for k in range(60))


def log_tail(begin, scale=1):
    """(ln(1 + f) - the terms below f^begin) / f^begin, times scale; f may be -1/3 to 1/2."""
    return lambda f: scale * sum((-1) ** (k + begin + 1) * f ** k / (k + begin) for k in range(90))


def shifted(x):
    return x + TINY


def erfc_ratio(q):
    """erfc(x) e^x^2 (1 + 2x) - 1 for q = (x - 2) / (x + 2)."""
    x = 2 * (1 + q) / (1 - q)
    return exp(x * x) * erfc(x) * (1 + 2 * x) - 1


FOURTH_ROOT = mpf(1) / 4
ROOT_RANGE = (1 / ROOT2 - 1, ROOT2 - 1)
ODD_LOG = ((ROOT2 - 1) / (ROOT2 + 1)) ** 2
LOG2E, LOG10E = f32(1 / LN2), f32(1 / LN10)

FITS = {
    # (e^r - 1 - r) / r^2
    "exp": (series(lambda k: 1 / factorial(k + 2)), 4, -LN2 / 2, LN2 / 2,
            lambda r: r * r * exp(-r)),
    # (2^r - 1) / r
    "exp2": (series(lambda k: LN2 ** (k + 1) / factorial(k + 1)), 5, mpf(-0.5), mpf(0.5),
             lambda r: fabs(r) * 2 ** -r),
    # (ln(1 + f) - f + f^2 / 2) / f^3
    "log": (log_tail(3), 6, *ROOT_RANGE, lambda f: fabs(f) ** 3 / fabs(log1p(shifted(f)))),
    # log2(1 + f) / f - f32's 1 / ln 2
    "log2": (lambda f: log_tail(1, 1 / LN2)(f) - LOG2E, 8, *ROOT_RANGE,
             lambda f: fabs(f) * LN2 / fabs(log1p(shifted(f)))),
    # the same to base 10
    "log10": (lambda f: log_tail(1, 1 / LN10)(f) - LOG10E, 8, *ROOT_RANGE,
              lambda f: fabs(f) * LN10 / fabs(log1p(shifted(f)))),
    # (2 / ln 2 artanh(q) - 2 / ln 2 q) / q^3, in s = q^2
    "pow": (series(lambda k: 2 / LN2 / (2 * k + 3)), 3, 0, ODD_LOG,
            lambda s: s * LN2 / 2 * sqrt(shifted(s)) / atanh(sqrt(shifted(s)))),
    # (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4, in s = r^2
    "sin": (series(lambda k: (-1) ** (k + 1) / factorial(2 * k + 3)), 3, 0, (pi * 5 / 16) ** 2,
            lambda s: s * sqrt(shifted(s)) / sin(sqrt(shifted(s)))),
    "cos": (series(lambda k: (-1) ** k / factorial(2 * k + 4)), 3, 0, (pi * 5 / 16) ** 2,
            lambda s: s * s / cos(sqrt(s))),
    # (tanh x - x) / x^3, in s = x^2
    "tanh near": (lambda s: (tanh(sqrt(shifted(s))) / sqrt(shifted(s)) - 1) / shifted(s), 4,
                  mpf(10) ** -12, mpf("0.49"), lambda s: s * sqrt(s) / tanh(sqrt(s))),
    # (e^2r - 1) / r
    "tanh far": (series(lambda k: mpf(2) ** (k + 1) / factorial(k + 1)), 4, -LN2 / 4, LN2 / 4,
                 lambda r: fabs(r) * exp(-2 * r)),
    # (sinh x - x) / x^3, (asinh x - x) / x^3 and (atan x - x) / x^3, in s = x^2
    "sinh": (series(lambda k: 1 / factorial(2 * k + 3)), 3, 0, 1,
             lambda s: s * sqrt(shifted(s)) / sinh(sqrt(shifted(s)))),
    "asinh": (lambda s: (asinh(sqrt(shifted(s))) / sqrt(shifted(s)) - 1) / shifted(s), 5,
              mpf(10) ** -12, mpf("0.5"), lambda s: s * sqrt(s) / asinh(sqrt(s))),
    "atan": (lambda s: (atan(sqrt(shifted(s))) / sqrt(shifted(s)) - 1) / shifted(s), 8,
             mpf(10) ** -12, 1, lambda s: s * sqrt(s) / atan(sqrt(s))),
    # erf(x) / x - 1, in s = x^2
    "erf near": (lambda s: erf(sqrt(s)) / sqrt(s) - 1, 6, mpf(10) ** -12, mpf("1.21"),
                 lambda s: sqrt(s) / erf(sqrt(s))),
    "erf far": (lambda x: erfc(x) ** FOURTH_ROOT, 7, mpf("1.1"), mpf(4),
                lambda x: 4 * erfc(x) ** (1 - FOURTH_ROOT)),
    # up to x = 10.2
    "erfc": (erfc_ratio, 10, -1, mpf("0.672"), lambda q: 1 / (1 + erfc_ratio(q))),
}


def main():
    for name in sys.argv[1:] or FITS:
        coefficients, error = fit(*FITS[name])
        print(f"{name}: error {float(error * 2 ** 24):.3g}")
        print("   ", ", ".join(float(c).hex().replace("0000000p", "p") for c in coefficients))


if __name__ == "__main__":
    main()
