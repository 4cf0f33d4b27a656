"""Finds the installed packages that a script needs. It reads the script, and the files beside the script that are imported; it runs
nothing."""

import os
import sys

ONLY_AST = 0x400  # the value of ast.PyCF_ONLY_AST, so that ast need not be imported
MAX_FILES, MAX_BYTES = 500, 1 << 20


def _imports(body, found):
    """Appends (module, names, level) to `found` for each import that may run when `body` runs as a module. Functions are not entered.

    Returns False and stops where a statement changes the environment, because later imports must see the change.
    """
    for node in body:
        kind = type(node).__name__
        if kind == "Import":
            found.extend((alias.name, (), 0) for alias in node.names)
        elif kind == "ImportFrom":
            found.append((node.module or "", tuple(alias.name for alias in node.names), node.level))
        elif kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            continue
        elif kind == "If" and _mentions(node.test, "TYPE_CHECKING"):
            continue
        elif _changes_environment(node):
            return False
        else:
            for part in ("body", "orelse", "finalbody"):
                if not _imports(getattr(node, part, None) or (), found):
                    return False
            for handler in getattr(node, "handlers", None) or ():
                if not _imports(handler.body, found):
                    return False
    return True


def _walk(node):
    yield node
    for field in node._fields:
        value = getattr(node, field, None)
        for child in value if isinstance(value, list) else (value,):
            if hasattr(child, "_fields"):
                yield from _walk(child)


def _mentions(node, name):
    return any(getattr(x, "id", None) == name or getattr(x, "attr", None) == name for x in _walk(node))


def _changes_environment(node):
    """Whether a statement (not a block) changes environment variables: os.environ[...] = x, os.environ.setdefault(...), putenv."""
    kind = type(node).__name__
    if kind in ("Assign", "AugAssign", "AnnAssign", "Delete"):
        targets = getattr(node, "targets", None) or [node.target]
        return any(_mentions(target, "environ") for target in targets)
    if kind == "Expr" and type(node.value).__name__ == "Call":
        return _mentions(node.value.func, "environ") or _mentions(node.value.func, "putenv")
    return False


class Reader:
    """Reads files below an open folder."""

    def __init__(self, folder):
        self.folder = folder
        self.read = 0

    def text(self, path):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        except OSError:
            return None
        with open(fd, "rb") as file:
            self.read += 1
            return file.read(MAX_BYTES)

    def local(self, directory, module):
        """The paths of the files that run when `module` is imported from `directory`, or None where the module is not there."""
        files, path = [], directory
        for part in module.split("."):
            path = f"{path}/{part}" if path else part
            if self.exists(f"{path}/__init__.py"):
                files.append(f"{path}/__init__.py")
            elif self.exists(f"{path}.py"):
                return files + [f"{path}.py"]
            elif not self.exists(path):
                return files if files else None
        return files

    def exists(self, path):
        try:
            os.stat(path, dir_fd=self.folder)
            return True
        except OSError:
            return False


def wanted_imports(folder, script):
    """The imports of modules that are not beside the script, as [(module, names)] in the order in which they occur.

    `folder` is a descriptor of the working directory, and `script` is the path of the script below it.
    """
    reader, found, seen, queue = Reader(folder), [], set(), [script]
    home = script.rpartition("/")[0]
    while queue and reader.read < MAX_FILES:
        path = queue.pop(0)
        if path in seen:
            continue
        seen.add(path)
        source = reader.text(path)
        if source is None:
            continue
        try:
            tree = compile(source, path, "exec", ONLY_AST, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # The interpreter will report the fault when it runs this file.
        here = []
        all_of_it = _imports(tree.body, here)
        for module, names, level in here:
            if level:
                base = path.rpartition("/")[0]
                for _ in range(level - 1):
                    base = base.rpartition("/")[0]
                queue.extend(reader.local(base, module) or () if module else ())
                for name in names:
                    queue.extend(reader.local(base, f"{module}.{name}" if module else name) or ())
                continue
            files = reader.local(home, module)
            if files is None:
                if module != "__future__":
                    found.append((module, names))
                continue
            queue.extend(files)
            for name in names:
                queue.extend(reader.local(home, f"{module}.{name}") or ())
        if not all_of_it:
            break
    return found


def top_names(folder, script):
    """The names of modules beside the script. These hide installed modules of the same name."""
    home = script.rpartition("/")[0] or "."
    try:
        fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return set()
    try:
        names = os.listdir(fd)
    finally:
        os.close(fd)
    from importlib.machinery import all_suffixes

    suffixes = tuple(all_suffixes())
    return {name.partition(".")[0] for name in names if "." not in name or name.endswith(suffixes)}


def is_below(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def place_of(name):
    """The file or folder of a top-level module. Returns '' for a module without a file, and None where there is no such module."""
    from importlib.machinery import PathFinder

    spec = sys.modules[name].__spec__ if name in sys.modules else PathFinder.find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return next(iter(spec.submodule_search_locations), "")
    return spec.origin if spec.has_location else ""
