"""Holds `troupe config check|complete --schema` against Determined's own validators, on thousands of values.

The last Python client that carries validators is 0.21.0: its code for the keywords of Determined (union, checks,
eventually ...) is loaded here, over the schema files of 0.38.1. Compared, at both levels: whether a value is accepted,
and every default that is filled in. Values are the samples of test/data/config/samples.yaml, and those changed
at random in one to three places. The client's packages go into a virtual environment below the build folder.

usage: test/differential/config.py BUILD_DIR [VALUES_PER_SCHEMA [SEED]]
       test/differential/config.py BUILD_DIR --write-keyword-cases    writes test/data/config/keyword_cases.yaml anew
BUILD_DIR must hold troupe-config (ninja troupe-config). Exit code 1 where there is a difference.
"""

import copy
import json
import os
import pathlib
import random
import subprocess
import sys

import client_environment

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "config"
URL = "http://determined.ai/schemas/expconf/v0/"
LEVELS = ("sane", "complete")


def in_own_environment(build):
    """Runs this file again by an interpreter that has the client's validators."""
    python = client_environment.client_python(build)
    if pathlib.Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [str(python)] + sys.argv)


def null_is_missing(judge):
    """The client takes nulls out before it asks; the master says it here."""
    return lambda validator, names, x, schema: judge(validator, names, {k: v for k, v in x.items() if v is not None}, schema)


class Client:
    """The client's validators over a set of schema files."""

    def __init__(self, schemas):
        import importlib.util

        import jsonschema

        self.schemas = schemas
        root = next(p for p in sys.path if (pathlib.Path(p) / "determined").is_dir())
        where = pathlib.Path(root) / "determined/common/schemas/extensions.py"
        spec = importlib.util.spec_from_file_location("client_extensions", where)
        words = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(words)
        sane = {w: getattr(words, w) for w in ("disallowProperties", "union", "checks", "compareProperties", "optionalRef")}
        whole = dict(sane, eventuallyRequired=null_is_missing(words.eventuallyRequired), eventually=words.eventually)
        base = jsonschema.Draft7Validator
        self.classes = {"sane": jsonschema.validators.extend(base, sane), "complete": jsonschema.validators.extend(base, whole)}
        self.resolver = jsonschema.RefResolver
        self.made = {}

    def validator(self, name, level, schema=None):
        if schema is None and (name, level) in self.made:
            return self.made[name, level]
        own = self.schemas[name] if schema is None else schema
        store = {URL + n + ".json": s for n, s in self.schemas.items()}
        resolver = self.resolver(base_uri=URL + name + ".json", referrer=own, store=store)
        made = self.classes[level](schema=own, resolver=resolver)
        if schema is None:
            self.made[name, level] = made
        return made

    def accepts(self, name, x, level, schema=None):
        """None where the client's own code fails on the value."""
        try:
            return not next(self.validator(name, level, schema).iter_errors(x), None)
        except (TypeError, AttributeError):
            return None

    def filled(self, name, x):
        """`x` with the defaults that the schema files name, and the paths of these."""
        x, made = copy.deepcopy(x), []
        self.fill(self.schemas[name], x, (), made)
        return x, made

    def fill(self, schema, x, path, made):
        if "$ref" in schema or "optionalRef" in schema:
            url = schema.get("$ref") or schema["optionalRef"]
            if x is not None:
                self.fill(self.schemas[url[len(URL):-len(".json")]], x, path, made)
            return
        for item in schema.get("union", {}).get("items", []):
            ref = item.get("$ref", "")[len(URL):-len(".json")]
            if ref and self.accepts(ref, x, "sane"):
                self.fill(self.schemas[ref], x, path, made)
        if isinstance(x, list) and isinstance(schema.get("items"), dict):
            for i, part in enumerate(x):
                self.fill(schema["items"], part, path + (i,), made)
        if not isinstance(x, dict):
            return
        for key, part in schema.get("properties", {}).items():
            if not isinstance(part, dict):
                continue
            if x.get(key) is None and part.get("default") is not None:
                x[key] = copy.deepcopy(part["default"])
                made.append(path + (key,))
            if x.get(key) is not None:
                self.fill(part, x[key], path + (key,), made)


class Ours:
    def __init__(self, build):
        program = build / "runtime/cli/config_commands/troupe-config"
        self.process = subprocess.Popen([str(program), "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, verb, name, level, x):
        question = {"args": [verb, "--schema", name, "--level", level, "-"], "text": json.dumps(x)}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


OTHERS = [None, True, False, 0, 1, -1, 2, 100, 1.5, 1.0, 2001, 32768, 4294967296, "", "x", ".", "..", "/a", "../b", "O1", "o1", "best",
          "1 GiB", "3 potatoes", "a/../b", "/a:/b", "exclude_node", [], ["a"], [1], {}, {"batches": 1}, {"epochs": 0},
          {"type": "int", "minval": 1, "maxval": 2}, {"type": "log", "minval": 3, "maxval": 2}, {"name": "x"}, "grid", "single",
          "azure", "s3", "custom", "random", "gcs", "categorical", [None], [{}], {"a": {}}]


def changed(x, draw, keys):
    if isinstance(x, dict) and draw.random() < 0.9:
        if x and draw.random() < 0.75:
            key = draw.choice(sorted(x))
            if draw.random() < 0.2:
                del x[key]
            else:
                x[key] = changed(x[key], draw, keys)
        else:
            x[draw.choice(keys)] = copy.deepcopy(draw.choice(OTHERS))
        return x
    if isinstance(x, list) and x and draw.random() < 0.8:
        i = draw.randrange(len(x))
        x[i] = changed(x[i], draw, keys)
        return x
    return copy.deepcopy(draw.choice(OTHERS))


def keys_within(schema):
    if isinstance(schema, dict):
        for word, part in schema.items():
            if word in ("properties", "disallowProperties"):
                yield from part
            yield from keys_within(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from keys_within(part)


NATIVE = {"tpe", "gp", "cma_es", "asha_promotion", "hyperband", "bohb", "pbt", "nsga2", "median", "sync_halving"}


def words_within(x):
    if isinstance(x, dict):
        for key, part in x.items():
            yield key
            yield from words_within(part)
    elif isinstance(x, list):
        for part in x:
            yield from words_within(part)
    elif isinstance(x, str):
        yield x


def differs_on_purpose(name, x, level):
    """What we accept beyond Determined, and where its schemas refuse what it means to accept."""
    words = set(words_within(x))
    if words & NATIVE or words & {"early_stopping", "constraints", "version"}:
        return True
    if level == "complete" and "gpu" in words:  # the old name of cuda; the schema does not know
        return True
    if name == "experiment" and not (isinstance(x, dict) and isinstance(x.get("searcher"), dict) and "name" in x["searcher"]):
        return True  # a missing searcher passes for a grid
    if "4294967296" in json.dumps(x) and (name == "reproducibility" or (isinstance(x, dict) and x.get("reproducibility"))):
        return True  # the schema has no upper bound; the master's seed has 32 bits
    storage = x if name in ("checkpoint-storage", "shared-fs", "tensorboard-storage") else x.get("checkpoint_storage") if isinstance(x, dict) else None
    if isinstance(storage, dict) and isinstance(storage.get("storage_path"), str) and isinstance(storage.get("host_path"), str):
        # The client compares the beginnings of two strings: /ab is not a folder within /a, and `.` is not an absolute path.
        return True
    return False


# Normal forms, which a default takes here and not in the schema file; and a section that both ignore.
OWN_FORM = {"image", "environment_variables", "log_policies", "environment", "tensorboard_storage"}
OWN_FORMS = {"environment-image", "environment-image-map", "environment-variables", "environment-variables-map", "log-policies",
             "tensorboard-storage"}


def same(ours, theirs):
    if theirs is None:
        return ours is None
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(same(ours.get(k), v) for k, v in theirs.items())
    return ours == theirs


def at(x, path):
    for step in path:
        if isinstance(x, dict):
            x = x.get(step)
        elif isinstance(x, list) and isinstance(step, int) and step < len(x):
            x = x[step]
        else:
            return None
    return x


def compare(client, ours, samples, each, seed):
    all_keys = sorted({k for s in client.schemas.values() for k in keys_within(s)} | {"zzz"})
    counts = {"accepted": 0, "refused": 0, "without opinion": 0, "on purpose": 0, "defaults": 0}
    differences = []
    for name, levels in samples.items():
        own = sorted(set(keys_within(client.schemas[name])) | {"zzz", "type", "name"})
        seeds = levels["complete"] + levels.get("sane", [])
        draw = random.Random(f"{name} {seed}")
        for i in range(len(seeds) + each):
            x = copy.deepcopy(seeds[i] if i < len(seeds) else draw.choice(seeds))
            for _ in range(draw.randint(1, 3) if i >= len(seeds) else 0):
                x = changed(x, draw, own if draw.random() < 0.7 else all_keys)
            for level in LEVELS:
                want = client.accepts(name, x, level)
                if want is None:
                    counts["without opinion"] += 1
                    continue
                if differs_on_purpose(name, x, level):
                    counts["on purpose"] += 1
                    continue
                got = ours.ask("check", name, level, x)
                counts["accepted" if want else "refused"] += 1
                if got["ok"] != want:
                    differences.append((name, level, "accepted" if got["ok"] else "refused: " + got["errors"][0]["message"], x))
                elif want:
                    whole, made = client.filled(name, x)
                    done = ours.ask("complete", name, "sane", x)["value"]
                    for path in made:
                        if OWN_FORM & set(path) or name in OWN_FORMS:
                            continue
                        counts["defaults"] += 1
                        if not same(at(done, path), at(whole, path)):
                            differences.append((name, "default", ".".join(map(str, path)) + " is " + json.dumps(at(done, path)), x))
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    for name, level, what, x in differences[:40]:
        print(f"difference: {name} {level}: ours {what}: {json.dumps(x)[:400]}")
    print(f"{len(differences)} differences")
    return 1 if differences or not counts["accepted"] or not counts["refused"] else 0


# Keywords that refuse nothing.
SILENT = {"$schema", "$id", "$comment", "title", "default", "unionKey", "defaultMessage", "then"}


def keywords(schema):
    """The keywords that the file uses, and that can refuse something."""
    found = set()

    def walk(s):
        if not isinstance(s, dict):
            return
        for word, part in s.items():
            if word not in SILENT and part is not True and part not in ([], {}):
                found.add(word)
            if word in ("properties", "checks"):
                for inner in part.values():
                    walk(inner)
            elif word in ("items", "additionalProperties", "not", "if", "then", "else", "eventually"):
                walk(part)
            elif word in ("allOf", "anyOf", "oneOf"):
                for inner in part:
                    walk(inner)
            elif word == "union":
                for inner in part["items"]:
                    walk(inner)

    walk(schema)
    return found


def parts_of(schema, found):
    if isinstance(schema, dict):
        found.add(id(schema))
        for part in schema.values():
            parts_of(part, found)
    elif isinstance(schema, list):
        for part in schema:
            parts_of(part, found)
    return found


# Where the search at random seldom comes to.
BY_HAND = {
    "azure": [{"type": "azure", "container": "c"}],
    "check-grid-hyperparameter": [[{"type": "int"}], {"a": {"type": "log"}}],
    "check-positive-length": [{"batches": "a"}],
    "experiment": [{"searcher": {"name": "grid"}, "hyperparameters": {"a": {"type": "int", "minval": 1, "maxval": 2}}}],
    "hyperparameter": [{"a": {"type": "int"}}, {"a": 3, "b": {"type": "int"}}],
    "hyperparameters": [{"a": {"type": "int"}}],
    "log-policy": [{"name": "a", "action": "zzz"}],
    "retention-policy": [{"log_retention_days": -2}],
    "searcher-adaptive-asha": [{"name": "adaptive_asha", "max_length": -1}],
    "searcher-grid": [{"name": "grid", "max_length": -1}],
    "searcher-length": [-1],
    "searcher-random": [{"name": "random", "max_length": -1}],
    "searcher-single": [{"name": "single", "max_length": -1}],
    "searcher-sync-halving": [{"name": "sync_halving"}],
    "shared-fs": [{"type": "shared_fs", "host_path": "/a", "storage_path": "/b"}],
}


class Witness:
    """Which keywords of one file said no while a value was judged."""

    def __init__(self, client, name):
        self.client, self.name, self.own = client, name, parts_of(client.schemas[name], set())
        self.refusing = set()
        self.validators = {level: self.watched(level) for level in LEVELS}

    def watched(self, level):
        import jsonschema

        base = self.client.classes[level]

        def watch(word, judge):
            def judged(validator, what, x, schema):
                errors = list(judge(validator, what, x, schema))
                if errors and id(schema) in self.own:
                    self.refusing.add(word)
                yield from errors

            return judged

        made = jsonschema.validators.extend(base, {w: watch(w, f) for w, f in base.VALIDATORS.items()})
        store = {URL + n + ".json": s for n, s in self.client.schemas.items()}
        return made(schema=self.client.schemas[self.name],
                    resolver=self.client.resolver(base_uri=URL + self.name + ".json", referrer=self.client.schemas[self.name], store=store))

    def refuses_by(self, word, x):
        """At the sane level, or where that accepts, at the complete one."""
        for level in LEVELS:
            self.refusing.clear()
            try:
                if list(self.validators[level].iter_errors(x)):
                    return word in self.refusing
            except (TypeError, AttributeError):
                return False
        return False


def write_keyword_cases(client, samples, before):
    """For each keyword of each file a value that is accepted, and a short one that is refused where this keyword says no."""
    cases, lacking = {}, []
    all_keys = sorted({k for s in client.schemas.values() for k in keys_within(s)} | {"zzz"})
    for name in sorted(client.schemas):
        witness = Witness(client, name)
        seeds = samples[name]["complete"]
        own = sorted(set(keys_within(client.schemas[name])) | {"zzz", "type", "name"})
        for word in sorted(keywords(client.schemas[name])):
            draw, best = random.Random(f"{name} {word}"), None
            known = before.get(name, {}).get(word)
            for x in ([known["refuse"]] if known else []) + BY_HAND.get(name, []):
                if best is None and witness.refuses_by(word, x):
                    best = x
            for i in range(0 if best is not None else 1500):
                x = copy.deepcopy(draw.choice(seeds + samples[name].get("sane", [])))
                for _ in range(draw.randint(1, 3)):
                    x = changed(x, draw, own if draw.random() < 0.8 else all_keys)
                if not differs_on_purpose(name, x, "complete") and witness.refuses_by(word, x):
                    best = x if best is None or len(json.dumps(x)) < len(json.dumps(best)) else best
                    if len(json.dumps(best)) < 80 or i > 300:
                        break
            if best is None:
                lacking.append(f"{name} {word}")
                continue
            cases.setdefault(name, {})[word] = {"accept": min(seeds, key=lambda s: len(json.dumps(s))), "refuse": best}
    with open(DATA / "keyword_cases.yaml", "w") as out:
        out.write("# For each schema file and each keyword it uses: a value that is accepted, and one that is refused, where this\n"
                  "# keyword says no. Made by test/differential/config.py --write-keyword-cases, which keeps what still holds.\n")
        for name, words in cases.items():
            out.write(name + ":\n")
            for word, pair in words.items():
                out.write(f"  {json.dumps(word)}:\n    accept: {json.dumps(pair['accept'])}\n    refuse: {json.dumps(pair['refuse'])}\n")
    print(f"{sum(map(len, cases.values()))} keywords with cases; without: {lacking}")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    build = pathlib.Path(sys.argv[1]).resolve()
    in_own_environment(build)
    import yaml

    files = {p.stem: json.loads(p.read_text()) for p in sorted((DATA / "schemas").glob("*.json"))}
    for schema in files.values():
        del schema["$schema"]  # with it jsonschema takes a plain validator at every $ref, which skips our keywords
    client = Client(files)
    samples = yaml.safe_load((DATA / "samples.yaml").read_text())
    if "--write-keyword-cases" in sys.argv:
        file = DATA / "keyword_cases.yaml"
        return write_keyword_cases(client, samples, yaml.safe_load(file.read_text()) if file.exists() else {}) or 0
    each = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    return compare(client, Ours(build), samples, each, int(sys.argv[3]) if len(sys.argv) > 3 else 0)


if __name__ == "__main__":
    sys.exit(main())
