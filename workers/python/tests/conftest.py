import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.append(str(Path(__file__).resolve().parents[3] / "test" / "cluster"))  # for `ports`

from fake_agent import ALLOCATION, TOKEN, FakeAgent  # noqa: E402

PACKAGE = Path(__file__).parent.parent


@pytest.fixture
def agent():
    agent = FakeAgent().start()
    yield agent
    agent.stop()


@pytest.fixture
def run(tmp_path):
    """A function that runs a script in another process, in an empty folder. It returns (exit code, lines of stdout, stderr)."""

    def start(script, agent=None, argv=(), popen=False, **env):
        full = {k: v for k, v in os.environ.items() if not k.startswith("TROUPE_") and k != "RANK"}
        full["PYTHONPATH"] = str(PACKAGE)
        if agent is not None:
            (tmp_path / "checkpoints").mkdir(exist_ok=True)
            full.update(TROUPE_HARNESS=agent.endpoint, TROUPE_TASK_TOKEN=TOKEN, TROUPE_ALLOCATION_ID=ALLOCATION,
                        TROUPE_CHECKPOINT_DIR=str(tmp_path / "checkpoints"))
        full.update({k: v if isinstance(v, str) else json.dumps(v) for k, v in env.items()})
        (tmp_path / "script.py").write_text("import troupe\n" + script)
        process = subprocess.Popen([sys.executable, "script.py", *argv], cwd=tmp_path, env=full, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if popen:
            return process
        out, err = process.communicate(timeout=180)
        return process.returncode, out.splitlines(), err

    return start
