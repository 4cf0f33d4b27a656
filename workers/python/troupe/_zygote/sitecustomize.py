"""Turns an interpreter that has just started into a zygote, which the agent's first PYTHONPATH entry brings about.

Python imports this module between its own start and the script that it was told to run. Here the zygote warms itself and
serves; a forked process returns from here, and the interpreter goes on as ever: it finds the script, makes `__main__`,
runs it and cleans up. So no frame, argument or exit differs from a fresh start. See docs/decisions/050-the-zygote.md.
"""

import sys


def _begin():
    here = __file__.rpartition("/")[0]
    while here in sys.path:
        sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    mine = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401  the host's own module, as without us
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
        # Python expects this error where the module does not exist.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")


_begin()
