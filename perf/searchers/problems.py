"""The test problems for all searchers: name, space, function, least value, and the median of random search after 100 trials.

Spaces are written as Troupe's hyperparameters. A logarithmic dimension of Troupe is a float, which a script rounds where it needs an
integer. `"integer": True` marks such a dimension, so that a peer with logarithmic integers of its own can use those.
"""
import hashlib
import json
import math


def real(low, high):
    return {"type": "double", "minval": low, "maxval": high}


def log(base, low, high):
    return {"type": "log", "base": base, "minval": low, "maxval": high}


def box(n, low, high):
    return {f"x{i}": real(low, high) for i in range(n)}


def xs(h):
    return [h[f"x{i}"] for i in range(len(h))]


def branin(h):
    x, y = xs(h)
    q = y - 5.1 / (4 * math.pi ** 2) * x * x + 5 / math.pi * x - 6
    return q * q + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
     [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]]


def hartmann6(h):
    x = xs(h)
    return -sum(c * math.exp(-sum(A[i][j] * (x[j] - P[i][j]) ** 2 for j in range(6)))
                for i, c in enumerate([1, 1.2, 3, 3.2]))


def ackley(h):
    x = xs(h)
    return (-20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / len(x)))
            - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / len(x)) + 20 + math.e)


def rastrigin(h):
    return sum(v * v - 10 * math.cos(2 * math.pi * v) + 10 for v in xs(h))


def bump(z):
    return 1 - math.exp(-z * z / 2)


def mixed8(h):
    a, b, w = math.log10(h["lr"]), math.log10(h["wd"]), math.log2(round(h["width"]))
    size = math.log2(h["batch"] / 64)
    best = {"sgd": -0.7, "momentum": -1.5, "adam": -3.0}[h["opt"]] + 0.25 * size
    return (0.05 + 0.25 * bump((a - best) / 0.8) + 0.03 * bump((b + 4) / 1.5) + 0.1 * (h["dropout"] - 0.25) ** 2
            + 0.004 * (h["layers"] - 3) ** 2 + 0.0025 * (w - 7.5) ** 2
            + {"sgd": 0.02, "momentum": 0.01, "adam": 0.0}[h["opt"]]
            + {"relu": 0.0, "tanh": 0.015, "gelu": 0.005}[h["act"]]
            + {-1: 0.01, 0: 0.0, 1: 0.005, 2: 0.02}[round(size)])


MIXED = {"lr": log(10, -5, 0), "wd": log(10, -6, -1), "dropout": real(0, 0.7),
         "layers": {"type": "int", "minval": 1, "maxval": 6}, "width": log(2, 4, 9) | {"integer": True},
         "opt": {"type": "categorical", "vals": ["sgd", "momentum", "adam"]},
         "batch": {"type": "categorical", "vals": [32, 64, 128, 256]},
         "act": {"type": "categorical", "vals": ["relu", "tanh", "gelu"]}}

PROBLEMS = {
    "branin": ({"x0": real(-5, 10), "x1": real(0, 15)}, branin, 0.397887, 0.888),
    "hartmann6": (box(6, 0, 1), hartmann6, -3.322368, -2.12),
    "ackley10": (box(10, -32.768, 32.768), ackley, 0.0, 19.73),
    "ackley10 off centre": (box(10, -5, 10), ackley, 0.0, 10.23),
    "rastrigin5 shifted": (box(5, -4, 5.12), rastrigin, 0.0, 37.96),
    "mixed8": (MIXED, mixed8, 0.05, 0.081),
}


def for_troupe(space):
    """The space without the marks of integers, which Troupe's configuration does not know."""
    return {name: {k: v for k, v in spec.items() if k != "integer"} for name, spec in space.items()}


def digest(name):
    """A hash of a problem's space and of its values at a few places. It changes with the problem, so that kept results of an older
    version are not used."""
    space, function, least, _ = PROBLEMS[name]

    def at(spec, u):
        if spec["type"] == "categorical":
            return spec["vals"][int(u * len(spec["vals"]))]
        x = spec["minval"] + u * (spec["maxval"] - spec["minval"])
        return spec["base"] ** x if spec["type"] == "log" else round(x) if spec["type"] == "int" else x

    places = [[(0.137 * (i + 1) * (j + 2)) % 1 for j in range(len(space))] for i in range(7)]
    values = [f"{function({n: at(s, u) for (n, s), u in zip(space.items(), place)}):.9g}" for place in places]
    return hashlib.sha256(json.dumps([space, values, least]).encode()).hexdigest()[:8]
