"""Fits y = 3 x - 1 by gradient descent: a stand-in for a model that takes longer."""
import json
import random

import troupe

p = troupe.params(lr=0.1)
rng = random.Random(1)
points = [(x, 3 * x - 1 + rng.gauss(0, 0.01)) for x in (rng.uniform(-1, 1) for _ in range(200))]
w = b = 0.0
for epoch in range(1, 11):
    for x, y in points:
        error = w * x + b - y
        w -= p.lr * error * x
        b -= p.lr * error
    troupe.validate({"loss": sum((w * x + b - y) ** 2 for x, y in points) / len(points), "epoch": epoch}, step=epoch)
with troupe.checkpoint(10) as path:
    (path / "weights.json").write_text(json.dumps({"w": w, "b": b}))
