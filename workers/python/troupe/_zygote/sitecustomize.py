"""Turns an interpreter that has just started into a zygote. Python finds this module by the first PYTHONPATH entry, which the agent sets.

Python imports this module after its own start and before the script that it was told to run. In here the zygote warms up and serves.
A forked process returns from here, and its interpreter continues as after any start: it finds the script, makes `__main__`, runs the
script and cleans up. So no frame, argument or exit differs from a fresh start. See docs/decisions/050-the-zygote.md.
"""

import sys


def _begin():
    here = __file__.rpartition("/")[0]
    while here in sys.path:
        sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    mine = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401  the host's own module, which this one hides
    except ImportError as why:
        if why.name != "sitecustomize":
            raise
    host_has_one = "sitecustomize" in sys.modules
    sys.modules.setdefault("sitecustomize", mine)

    def load(name):
        path = f"{here}/{name}.py"
        with open(path, encoding="utf-8") as file:
            space = {"__name__": f"troupe._zygote.{name}", "__file__": path, "load": load}
            exec(compile(file.read(), path, "exec"), space)
            return space

    load("parent")["serve"](here)
    if not host_has_one:
        # Python expects this error where the host has no such module.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")


_begin()
