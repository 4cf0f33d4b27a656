"""The hyperparameters of a script, merged from its defaults, the cluster's choice and the command line."""

import sys
from typing import Any, Dict, Mapping, Sequence

from troupe._errors import TroupeError


class Params(Dict[str, Any]):
    """A dict whose items are attributes too: `p.lr` is `p["lr"]`. Maps inside are Params as well. Where a hyperparameter has the
    name of a method of dict (`items`, `copy`), `p.items` is the method, and the hyperparameter is read as `p["items"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(sorted(self)) or "none"
            raise AttributeError(f"no hyperparameter {name!r}; there are: {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def merge(defaults: Mapping[str, Any], hparams_json: str, argv: Sequence[str]) -> Params:
    """Returns `defaults`, overridden by `hparams_json` (a JSON object or empty), and these overridden by flags in `argv`.

    Raises TroupeError where `hparams_json` is not a JSON object, and ValueError where a flag does not fit the type of the value
    that the flag replaces.
    """
    merged: Dict[str, Any] = dict(defaults)
    if hparams_json:
        import json

        try:
            chosen = json.loads(hparams_json)
        except ValueError as why:
            raise TroupeError(f"TROUPE_HPARAMS is not JSON: {why}") from None
        if not isinstance(chosen, dict):
            raise TroupeError("TROUPE_HPARAMS is not a JSON object")
        for name, value in chosen.items():
            # YAML writes 1 for 1.0, but a script with a float default expects a float.
            if type(merged.get(name)) is float and type(value) is int:
                value = float(value)
            merged[name] = value
    for name, text in _flags(argv, merged).items():
        merged[name] = _parse(name, text, merged[name])
    return _wrap(merged)


def _flags(argv: Sequence[str], known: Mapping[str, Any]) -> Dict[str, str]:
    """Reads `--name=value` and `--name value` for known names; other flags belong to the script."""
    found = {}
    for at, word in enumerate(argv):
        if word == "--":
            break
        if not word.startswith("--"):
            continue
        name, equals, text = word[2:].partition("=")
        name = name if name in known else name.replace("-", "_")
        if name not in known:
            continue
        if not equals:
            follower = argv[at + 1] if at + 1 < len(argv) else None
            if isinstance(known[name], bool) and (follower is None or follower.lower() not in _BOOLS):
                text = "true"
            elif follower is None or follower.startswith("--"):
                raise ValueError(f"--{name}: a value must follow, as --{name}=VALUE")
            else:
                text = follower
        found[name] = text
    return found


_BOOLS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _parse(name: str, text: str, like: Any) -> Any:
    try:
        if isinstance(like, bool):
            return _BOOLS[text.lower()]
        if isinstance(like, int):
            return int(text)
        if isinstance(like, float):
            return float(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(like)]
        raise ValueError(f"--{name}={text}: expected {kind}, like {like!r}") from None
    if isinstance(like, str):
        return text
    import json

    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if like is not None and not isinstance(value, type(like)):
        raise ValueError(f"--{name}={text}: expected JSON of the kind of {like!r}")
    return value


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Params({name: _wrap(item) for name, item in value.items()})
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value


def command_line() -> Sequence[str]:
    return sys.argv[1:]
