"""Writes scikit-learn's digits as a plain file, 64 pixels and the label a line: python3 export.py FILE. Imports nothing heavy."""
import gzip
import importlib.util
import os
import pathlib
import sys

package = importlib.util.find_spec("sklearn")
if package is None:
    sys.exit("scikit-learn, whose digits this example trains on, is not installed for " + sys.executable)
source = pathlib.Path(package.origin).parent / "datasets/data/digits.csv.gz"
target = pathlib.Path(sys.argv[1])
if not target.exists():
    draft = target.with_name(f"{target.name}.{os.getpid()}")  # ranks may come at the same time
    draft.write_bytes(gzip.decompress(source.read_bytes()))
    draft.replace(target)
