#!/usr/bin/env python3
"""Holds the rule of dependency: runtime -> actors -> searchers, storage, workers -> model.

Fails, naming file and line, when an include points up or sideways, when caf/ is included outside the shells, or rocksdb/
outside storage/.
"""
import pathlib
import re
import sys

MAY = {
    "model": {"model"},
    "searchers": {"searchers", "model"},
    "storage": {"storage", "model"},
    "workers": {"workers", "model"},
    "actors": {"actors", "searchers", "storage", "workers", "model"},
    "runtime": {"runtime", "actors", "searchers", "storage", "workers", "model"},
}
SHELL = re.compile(r"^actors/(.*_actor\.(hpp|cpp)|messages\.(hpp|cpp))$|^runtime/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def faults_of(root):
    for folder, allowed in MAY.items():
        for file in sorted((root / folder).rglob("*.[hc]pp")):
            name = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(2)
                top = target.split("/")[0]
                if top in MAY and top not in allowed:
                    yield f"{name}:{number}: {folder}/ may not include {target}"
                if top == "caf" and not SHELL.match(name):
                    yield f"{name}:{number}: caf/ outside the shells: {target}"
                if top == "rocksdb" and folder != "storage":
                    yield f"{name}:{number}: rocksdb/ outside storage/: {target}"
                if name.startswith(("runtime/client/", "runtime/cli/", "runtime/shell/")) and target.startswith(("actors/", "runtime/node/", "caf/")):
                    yield f"{name}:{number}: the client side knows no actor: {target}"


if __name__ == "__main__":
    found = list(faults_of(pathlib.Path(__file__).resolve().parents[2]))
    print("\n".join(found) or "the arrows hold")
    sys.exit(bool(found))
