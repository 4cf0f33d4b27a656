"""Runs every command of the README as written: all its fenced `sh` blocks, one after the other, in one shell.

The shell has a home, a network and processes of its own, so that fixed ports are free and nothing outlives the test.
"""
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ["TROUPE_BINARY"]).resolve()

# Starts the loopback device of a new network namespace, and then becomes the shell.
LOOPBACK = textwrap.dedent("""
    import fcntl, os, socket, struct, sys
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING
    os.execvp(sys.argv[1], sys.argv[1:])
""")


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)


def can_unshare():
    flags = [] if os.getuid() == 0 else ["--map-root-user"]
    return subprocess.run(["unshare", *flags, "--net", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="this machine gives no network and process namespaces")
def test_every_command_of_the_readme_runs_as_written(tmp_path):
    tree = tmp_path / "troupe"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "troupe").symlink_to(BINARY)
    for name in os.listdir(SOURCE):
        if name not in (".git", "bin", "build", "mine"):
            (tree / name).symlink_to(SOURCE / name)
    (tree / "build").symlink_to(BINARY.parents[1])
    found = blocks()
    assert len(found) >= 5
    script = "set -euo pipefail\n" + "".join(
        f"echo '== block {number}'\ncd '{tree}'\nset -x\n{block}{{ set +x; }} 2>/dev/null\n" for number, block in enumerate(found, 1))
    (tmp_path / "home").mkdir()
    (tmp_path / "all.sh").write_text(script)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TROUPE_", "DET_", "XDG_"))}
    environment["HOME"] = str(tmp_path / "home")
    flags = [] if os.getuid() == 0 else ["--map-root-user"]
    with open(tmp_path / "output", "w+b") as output:
        done = subprocess.run(["unshare", *flags, "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                               sys.executable, "-c", LOOPBACK, "bash", str(tmp_path / "all.sh")],
                              stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, timeout=800)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert done.returncode == 0, text[-6000:]
    assert f"== block {len(found)}" in text
