import troupe

x = troupe.params(x=0.5).x
for step in range(1, 4):
    troupe.validate({"loss": x * x + 1.0 / step}, step=step)
