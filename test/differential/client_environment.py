"""An interpreter with the last client of Determined that had validators for configurations."""

import subprocess
import venv


def client_python(build):
    """The path of its python, below the build folder; installed at the first call."""
    home = build / "client-0.21.0"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run(pip + ["--no-deps", "determined==0.21.0"], check=True)
        subprocess.run(pip + ["jsonschema==4.17.3", "pyyaml"], check=True)
        (home / "ready").touch()
    return python
