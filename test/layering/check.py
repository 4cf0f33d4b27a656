#!/usr/bin/env python3
"""Holds the rule of dependency: runtime -> actors -> searchers, storage, workers -> system -> model; searchers know no system.

Fails, naming file and line, when an include points up or sideways, when caf/ is included outside the shells, or rocksdb/
outside storage/. Fails, too, where a shell that shares the scheduler's threads reads storage.
"""
import pathlib
import re
import sys

MAY = {
    "model": {"model"},
    "system": {"system", "model"},
    "searchers": {"searchers", "model"},
    "storage": {"storage", "system", "model"},
    "workers": {"workers", "system", "model"},
    "actors": {"actors", "searchers", "storage", "workers", "system", "model"},
    "runtime": {"runtime", "actors", "searchers", "storage", "workers", "system", "model"},
}
SHELL = re.compile(r"^actors/(.*_(actor|part)\.(hpp|cpp)|(.*_)?messages\.(hpp|cpp)|message_types\.hpp|shells/.*)$|^runtime/")
# The rooms of runtime/: which of them each may include. What is absent here may include all.
ROOMS = {
    "client": {"client"},
    "cli": {"cli", "client"},
    "shell": {"shell", "cli", "client"},
    "http": {"http"},
    "proxy": {"proxy", "http"},
    "api": {"api", "http", "proxy"},
    "web": {"web", "api", "http"},
    "forward": {"forward", "http"},
    "provider": {"provider"},
    "node": {"node", "api", "web", "http", "client", "forward", "provider", "proxy"},
    "launch": {"launch", "node", "api", "cli", "client"},
    "embed": {"embed", "node", "api", "web"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A shell without a thread of its own shares the scheduler's with all others, and may not wait for a disk there.
READS = re.compile(r"\bpeers_\.reads\s*->|\*\s*peers_\.reads\b")


def faults_of(root):
    for folder, allowed in MAY.items():
        for file in sorted((root / folder).rglob("*.[hc]pp")):
            name = file.relative_to(root).as_posix()
            text = file.read_text()
            own_thread = "caf::detached" in text or "spawn_with_own_thread<" in text
            shares_a_thread = name.endswith("_actor.cpp") and not own_thread
            for number, line in enumerate(text.splitlines(), 1):
                if shares_a_thread and READS.search(line):
                    yield f"{name}:{number}: storage is read on a thread of the scheduler: {line.strip()}"
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
                room, wanted = name.split("/")[1], target.split("/")[1] if top == "runtime" else None
                if folder == "runtime" and wanted and wanted not in ROOMS.get(room, {wanted}):
                    yield f"{name}:{number}: runtime/{room}/ may not include {target}"
                if name.startswith(("runtime/client/", "runtime/cli/", "runtime/shell/")) and target.startswith(("actors/", "caf/")):
                    yield f"{name}:{number}: the client side knows no actor: {target}"


if __name__ == "__main__":
    found = list(faults_of(pathlib.Path(__file__).resolve().parents[2]))
    print("\n".join(found) or "the arrows hold")
    sys.exit(bool(found))
