#!/usr/bin/env python3
"""What holds for every file, looked at before the tests: `./setup check` runs it after the build.

    test/check.py [--all | --no-tidy]

Formatting, the arrows between folders, documents that are made from the code, and clang-tidy. What has passed is remembered in
build/check by the content that it stands on, so that an unchanged tree takes seconds. clang-tidy takes minutes for the whole tree:
without --all it looks at what was committed last, for 150 seconds, and says how much is left for the next time.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/check"
TIDY_SECONDS = 150
# clang 14 cannot read these with libstdc++ 12: coroutines, aggregates made in parentheses.
NOT_FOR_CLANG = ("runtime/api/connection.cpp", "runtime/node/cluster_gate.cpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
# Who compares the documents that are made from the code.
DOCUMENTS = ("unit_config", "unit_api", "unit_cli", "unit_actors")
DOCUMENT_TESTS = "*IsCurrent:*ThePageOfMessagesHoldsIt"


def output(*words):
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def sources():
    """Tracked C++ files; where there is no repository, all that lie outside of hidden folders and build/."""
    listed = subprocess.run(["git", "ls-files", "*.cpp", "*.hpp"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [x for x in listed.stdout.split() if (ROOT / x).exists()]
    found = (x.relative_to(ROOT) for x in ROOT.rglob("*.[ch]pp"))
    return sorted(str(x) for x in found if x.parts[0] != "build" and not x.parts[0].startswith("."))


class Passed:
    """Keys of what has passed, one a line, kept at once: a run may be broken off. A key that a whole run did not ask for is forgotten."""

    def __init__(self, name):
        self.file = FOLDER / name
        self.known = set(self.file.read_text().split()) if self.file.exists() else set()
        self.now = set()

    def has(self, key):
        return key in self.known and not self.now.add(key)

    def add(self, key):
        self.now.add(key)
        with self.file.open("a") as file:
            file.write(f"\n{key}")

    def save(self):
        self.file.write_text("\n".join(sorted(self.now)))


def key_of(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part if isinstance(part, bytes) else part.encode())
        total.update(b"\0")
    return total.hexdigest()


def formatting(files):
    passed = Passed("formatted")
    rules = output("clang-format", "--version") + (ROOT / ".clang-format").read_text()
    keys = {file: key_of(rules, (ROOT / file).read_bytes()) for file in files}
    todo = [file for file in files if not passed.has(keys[file])]

    def wrong(file):
        return subprocess.run(["clang-format", "-n", "-Werror", file], cwd=ROOT, capture_output=True).returncode != 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, bad in zip(todo, pool.map(wrong, todo)):
            if bad:
                yield f"{file}: not formatted; run: clang-format -i {file}"
            else:
                passed.add(keys[file])
    passed.save()


def arrows():
    for script in ("check.py", "messages.py"):
        done = subprocess.run([sys.executable, ROOT / "test/layering" / script], capture_output=True, text=True)
        if done.returncode:
            yield from done.stdout.splitlines()


def documents():
    compared = 0
    for name in DOCUMENTS:
        binary = ROOT / "build/release/test" / name
        if not binary.exists():
            yield f"{binary.relative_to(ROOT)} is not built, so its documents are not compared; run: ./setup check"
            continue
        done = subprocess.run([binary, f"--gtest_filter={DOCUMENT_TESTS}", "--gtest_brief=1"], capture_output=True, text=True)
        if done.returncode:
            yield from (done.stdout.splitlines()[:20] or [f"{name} ended with {done.returncode}"])
        compared += sum(map(int, re.findall(r"^\[=+\] (\d+) tests? from", done.stdout, re.M)))
    if compared < 4:
        yield f"only {compared} documents were compared: this check no longer finds the tests ({DOCUMENT_TESTS})"


class Contents:
    """The project's own files that a source stands on, itself included."""

    def __init__(self):
        self.direct = {}

    def below(self, file, found=None):
        found = {} if found is None else found
        if file in found:
            return found
        if file not in self.direct:
            text = file.read_bytes()
            places = [(file.parent / x, ROOT / x, ROOT / "workers/trial" / x, ROOT / "runtime/embed" / x)
                      for x in INCLUDE.findall(text.decode())]
            self.direct[file] = hashlib.sha256(text).hexdigest(), [
                next(one for one in x if one.is_file()).resolve() for x in places if any(one.is_file() for one in x)]
        found[file], includes = self.direct[file]
        for include in includes:
            self.below(include, found)
        return found


def commands():
    """The compile commands of the product's sources in groups (cmake/unity.py), as clang takes them; nothing is built."""
    without = [str(ROOT / x) for x in NOT_FOR_CLANG]
    subprocess.run(["cmake", "-S", ROOT, "-B", FOLDER / "tidy", "-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DTROUPE_UNITY=ON", "-DTROUPE_UNITY_LINES=3000", "-DTROUPE_TESTS=OFF", "-DTROUPE_CCACHE=", f"-DTROUPE_UNITY_ALONE={';'.join(without)}", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
                    "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"], check=True, stdout=subprocess.DEVNULL)
    return [one for one in json.loads((FOLDER / "tidy/compile_commands.json").read_text()) if one["file"].endswith(".cpp") and one["file"] not in without]


def tidy(whole):
    passed, contents, newest = Passed("tidied"), Contents(), {}
    rules = output("clang-tidy", "--version") + (ROOT / ".clang-tidy").read_text()
    log = subprocess.run(["git", "log", "--format=", "--name-only", "-n", "300"], cwd=ROOT, capture_output=True, text=True).stdout
    for number, file in enumerate(log.split()):
        newest.setdefault(ROOT / file, number)
    todo = []
    for one in commands():
        below = contents.below(pathlib.Path(one["file"]).resolve())
        key = key_of(rules, one["command"].replace(str(ROOT), ""), *sorted(below.values()))
        if not passed.has(key):
            todo.append((min(newest.get(file, 1 << 30) for file in below), one["file"], key))
    todo.sort()
    begun = time.monotonic()

    def look(one):
        if not whole and time.monotonic() - begun > TIDY_SECONDS:
            return None
        return subprocess.run(["clang-tidy", "--quiet", "-p", FOLDER / "tidy", f"--header-filter=^{ROOT}/(actors|model|runtime|searchers|storage|system|workers)/",
                               one[1]], cwd=ROOT, capture_output=True, text=True)

    left = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for one, done in zip(todo, pool.map(look, todo)):
            if done is None:
                left += 1
            elif done.returncode:
                yield from (done.stdout + done.stderr).splitlines()
            else:
                passed.add(one[2])
    passed.save()
    if left:
        print(f"check: clang-tidy has not come to {left} of {len(todo)} changed groups of sources; the next run goes on", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--all", action="store_true", help="clang-tidy looks at all that has changed, however long that takes")
    words.add_argument("--no-tidy", action="store_true", help="leave clang-tidy out")
    args = words.parse_args()
    for tool in ("clang-format", "clang-tidy", "cmake"):
        if not shutil.which(tool):
            sys.exit(f"check: {tool} is not installed; ./setup check installs it")
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = False
    checks = {"formatting": formatting(sources()), "arrows": arrows(), "documents": documents()}
    if not args.no_tidy:
        checks["clang-tidy"] = tidy(args.all)
    for name, faults in checks.items():
        begun, found = time.monotonic(), list(faults)
        for fault in found:
            print(fault)
        print(f"check: {name}: {'FAILED' if found else 'ok'} ({time.monotonic() - begun:.0f} s)", flush=True)
        failed = failed or bool(found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
