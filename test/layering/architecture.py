#!/usr/bin/env python3
"""Holds ARCHITECTURE.md to the tree.

Fails when the table under "Who decides" has fewer than 20 rows, when one of its rows names a file that is not there or a
name that does not stand in that file, and when any other text of the page names a source file that is not there.
"""
import os
import pathlib
import re
import sys

ROW = re.compile(r"^\| (.+\?) \| (`[^|]+) \| `(\w+)` \|$")
PATH = re.compile(r"`([\w./*-]+)`")
SOURCE = re.compile(r"\.(cpp|hpp|py|md|yaml|json|map|txt|\*)$")
NOT_OURS = {"build", "bin", "mine"}


def files_of(root):
    for folder, inner, names in os.walk(root):
        inner[:] = [x for x in inner if not x.startswith(".") and x not in NOT_OURS]
        for name in names:
            yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def faults_of_table(root, page):
    begin = page.find("\n## Who decides\n")
    if begin < 0:
        yield "ARCHITECTURE.md: the heading 'Who decides' is missing"
        return
    section = page[begin + 1:].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    if len(rows) < 20:
        yield f"ARCHITECTURE.md: 'Who decides' has {len(rows)} rows, at least 20 are asked for"
    seen = set()
    for line in rows:
        match = ROW.match(line)
        if not match:
            yield f"ARCHITECTURE.md: not a row of the form | question? | `file` | `name` |: {line}"
            continue
        question, files, name = match.groups()
        if question in seen:
            yield f"ARCHITECTURE.md: asked twice: {question}"
        seen.add(question)
        for number, file in enumerate(PATH.findall(files)):
            if not (root / file).is_file():
                yield f"ARCHITECTURE.md: {question} {file} is not there"
            elif number == 0 and not re.search(rf"\b{name}\b", (root / file).read_text()):
                yield f"ARCHITECTURE.md: {question} {file} has no '{name}'"


def faults_of_names(root, page):
    """A path from the root or the end of one: `node.cpp`, `pool/pool.cpp`, `harness_frames.*`."""
    there = ["/" + name for name in files_of(root)]
    for name in sorted({x for x in PATH.findall(page) if SOURCE.search(x) and "NAME" not in x}):
        end = re.compile("/" + re.escape(name).replace(r"\*", "[^/]*") + "$")
        if not any(end.search(x) for x in there):
            yield f"ARCHITECTURE.md: there is no file {name}"


def faults_of(root):
    page = (root / "ARCHITECTURE.md").read_text()
    yield from faults_of_table(root, page)
    yield from faults_of_names(root, page)


if __name__ == "__main__":
    found = list(faults_of(pathlib.Path(__file__).resolve().parents[2]))
    print("\n".join(found) or "every file that ARCHITECTURE.md names is there")
    sys.exit(bool(found))
