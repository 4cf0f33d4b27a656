"""Tests which imports of a script the zygote makes beforehand, and which it leaves to the script."""

import os
import pathlib

import pytest

import troupe

PATH = pathlib.Path(troupe.__file__).parent / "_zygote" / "reading.py"


@pytest.fixture(scope="module")
def reading():
    space = {}
    exec(compile(PATH.read_text(), str(PATH), "exec"), space)
    return space


CASES = [
    ("import torch, numpy as np", ["torch", "numpy"]),
    ("from torch import nn, optim", [("torch", "nn", "optim")]),
    ("import sklearn.datasets", ["sklearn.datasets"]),
    ("try:\n  import apex\nexcept ImportError:\n  import other", ["apex", "other"]),
    ("if True:\n  import a\nelse:\n  import b\nwith open('x'):\n  import c", ["a", "b", "c"]),
    ("def f():\n  import late\nclass C:\n  import later", []),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import torch", [("typing", "TYPE_CHECKING")]),
    ("import a\nimport os\nos.environ['X'] = '1'\nimport torch", ["a", "os"]),
    ("from os import environ\nenviron.setdefault('X', '1')\nimport torch", [("os", "environ")]),
    ("import os\nos.putenv('X', '1')\nimport torch", ["os"]),
    ("import os\nif True:\n  os.environ.update(X='1')\nimport torch", ["os"]),
    ("import os\nx = os.environ['X']\nimport torch", ["os", "torch"]),
    ("from __future__ import annotations\nimport torch", ["torch"]),
    ("import helper\nimport torch", ["helper's", "torch"]),
    ("from package import part\nfrom . import sibling", ["package's", "part's", "sibling's"]),
    ("import \x00 broken", []),
    ("def (", []),
]


@pytest.mark.parametrize("script, wanted", CASES)
def test_only_what_is_sure_to_be_imported(reading, tmp_path, script, wanted):
    work = tmp_path / "work"
    (work / "sub" / "package").mkdir(parents=True)
    (work / "sub" / "train.py").write_bytes(script.encode())
    for name in ("helper.py", "sibling.py", "package/part.py", "package/__init__.py"):
        label = "package" if "__init__" in name else pathlib.Path(name).stem
        (work / "sub" / name).write_text(f"import mark_{label}\n")
    for name in ("random.yaml", "json.txt", "queue.d"):  # Files of these names cannot hide a module.
        (work / "sub" / name).write_text("")
    (work / "sub" / "native.so").write_text("")
    folder = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = reading["wanted_imports"](folder, "sub/train.py")
        beside = reading["top_names"](folder, "sub/train.py")
    finally:
        os.close(folder)
    plain = {(name[5:] + "'s" if name.startswith("mark_") else name, *names) for name, names in found}
    assert plain == {(one,) if isinstance(one, str) else one for one in wanted}
    assert beside == {"train", "helper", "sibling", "package", "native"}
