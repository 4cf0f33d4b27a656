#!/usr/bin/env python3
"""Holds docs/messages.md to the code.

Fails when a type of a CAF type id block under actors/, an event of a machine or a fact of model/facts.hpp has no
row in the page, and when a row of the page names none of these.
"""
import pathlib
import re
import sys

FIRST_CELL = re.compile(r"^\| `([a-z_:<>]+)`[^|]*\|")


def types_of(root):
    """Name -> where it is declared."""
    found = {}
    for file in sorted((root / "actors").rglob("*.hpp")):
        for inner in re.findall(r"CAF_ADD_TYPE_ID\(\w+, \((.+)\)\)", file.read_text()):
            found[inner.replace("troupe::", "")] = f"a type id block of {file.relative_to(root).as_posix()}"
    for file in sorted((root / "actors").glob("*/*.hpp")):
        for _, inner in re.findall(r"using (\w+_event) =\s*std::variant<([^;]*)>;", file.read_text()):
            for name in re.split(r"[,\s]+", inner.strip()):
                found.setdefault(name, f"an event in {file.relative_to(root).as_posix()}")
    for tag in re.findall(r'tag = "(\w+)";', (root / "model/facts.hpp").read_text()):
        found[tag] = "a fact of model/facts.hpp"
    return found


def faults_of(root):
    page = (root / "docs/messages.md").read_text().splitlines()
    rows = {match.group(1): number for number, line in enumerate(page, 1) if (match := FIRST_CELL.match(line))}
    types = types_of(root)
    if len(types) < 50:
        yield f"only {len(types)} types were found in the headers: this test no longer reads them"
    for name, where in sorted(types.items()):
        if name not in rows:
            yield f"docs/messages.md: no row for {name} ({where})"
    for name, number in sorted(rows.items()):
        if name not in types:
            yield f"docs/messages.md:{number}: {name} is not a message, event or fact"


if __name__ == "__main__":
    found = list(faults_of(pathlib.Path(__file__).resolve().parents[2]))
    print("\n".join(found) or "every message, event and fact has its row")
    sys.exit(bool(found))
