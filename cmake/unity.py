#!/usr/bin/env python3
"""Writes sources that include several others, so that what those share is compiled once: `unity.py FOLDER TARGET LINES SOURCE...` writes
FOLDER/TARGET_N.cpp and prints their paths, one a line.

A name that a file declares for itself alone (anonymous namespace, static) and that another file of the group or one of its headers
uses is renamed by a macro while that file is included; files for which that cannot be done stay apart. What a file declares is read
off the columns, as the whole tree is formatted by clang-format. LINES is the most that a group has, of its sources: the compiler's memory,
work for each core, and what one changed file costs.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOISE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
NAME = re.compile(r"(?<![\w])(?!\d)\w+")
MEMBER = re.compile(r"(?:\.|->|::)\s*(\w+)")
DECLARED = re.compile(r"(\w+)\s*(?:[({;=\[]|:(?!:)|$)")
OWN_TYPE = re.compile(r"^(?:struct|class|enum class|enum|union|concept)\s+(\w+)|^using (\w+) =|^template .*(?:struct|class) (\w+)(?: {|;)")
PASSED = ("TEST", "INSTANTIATE_", "static_assert", "namespace", "using ", "template", "public:", "private:", "protected:")
HIDDEN = re.compile(r"^namespace \{$(.*?)^\} // namespace$|^(static [^\n]*)$", re.M | re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
headers = {}  # the project's headers: their names, and the headers that they include


def read_header(path):
    if path not in headers:
        raw = path.read_text()
        headers[path] = set(NAME.findall(NOISE.sub('""', raw))), included_by(path, raw)
    return headers[path]


def included_by(path, raw):
    places = ([folder / x for folder in (path.parent, ROOT, ROOT / "workers/trial", ROOT / "runtime/embed")] for x in INCLUDE.findall(raw))
    return {next(y for y in x if y.is_file()).resolve() for x in places if any(y.is_file() for y in x)}


def all_below(files):
    found, todo = set(), list(files)
    while todo:
        if (file := todo.pop()) not in found:
            found.add(file)
            todo += read_header(file)[1]
    return found


class Source:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        raw = self.path.read_text()
        text = NOISE.sub('""', raw)
        self.lines = raw.count("\n")
        self.uses, self.members = set(NAME.findall(text)), set(MEMBER.findall(text))
        self.macros = set(re.findall(r"^#\s*define\s+(\w+)", text, re.M))
        self.own = set()
        for part in HIDDEN.findall(raw):
            for line in NOISE.sub('""', "\n".join(part)).splitlines():
                if not line or line[0].isspace() or line[0] in "#}":
                    continue
                if found := OWN_TYPE.match(line):
                    self.own.update(x for x in found.groups() if x)
                elif not line.startswith(PASSED) and (found := DECLARED.search(re.sub(r"<[^<>]*>", "", line))):
                    self.own.add(found[1])
                    if line.startswith("const"):  # one declaration may hold several
                        self.own.update(re.findall(r", (\w+) =", line))
        self.headers = all_below(included_by(self.path, raw))
        self.includes = []
        for line in raw.splitlines():
            if re.match(r"#\s*(define|if)", line):
                break  # the rest may depend on that
            if found := re.match(r'#\s*include\s+([<"])([^>"]+)[>"]', line):
                beside = self.path.parent / found[2]
                self.includes.append(f'"{beside.resolve()}"' if found[1] == '"' and beside.exists() else line.split(None, 1)[1])

    def clashes(self, other):
        """Names of this file that must be renamed beside the other one; None where that cannot be."""
        names = self.own & other.uses.union(*(headers[x][0] for x in other.headers - self.headers))
        return None if names & self.members or self.macros & other.uses else names


def grouped(sources, lines):
    groups = []
    for source in sources:
        for group in groups:
            if sum(x.lines for x in group) + source.lines <= lines and not any(
                    source.clashes(x) is None or x.clashes(source) is None for x in group):
                group.append(source)
                break
        else:
            groups.append([source])
    return groups


def written(group, number):
    lines = [f"#include {x}" for x in dict.fromkeys(x for source in group for x in source.includes)]
    for place, source in enumerate(group):
        names = sorted(set().union(*(source.clashes(x) for x in group if x is not source)))
        lines += [f"#define {x} {x}_of_{number}_{place}" for x in names]
        lines.append(f'#include "{source.path.resolve()}"')
        lines += [f"#undef {x}" for x in names]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    folder, target = pathlib.Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    for number, group in enumerate(grouped([Source(x) for x in sys.argv[4:]], int(sys.argv[3]))):
        file, text = folder / f"{target}_{number}.cpp", written(group, number)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        print(file)
