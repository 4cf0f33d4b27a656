"""The installed package as another program uses it: CMake and pkg-config find it, it is moved, the program is built again, and runs."""

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import urllib.request

import pytest

from cluster_under_test import BINARY, wait_for

BUILD = pathlib.Path(BINARY).parent
SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "examples/embed"
JOB = EXAMPLES / "job"


def run(*words, **how):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600, **how)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The package, installed once and then moved, so that no file may depend on the first place."""
    root = tmp_path_factory.mktemp("installed")
    first, moved = root / "first", root / "moved" / "deep"
    run("cmake", "--install", BUILD, "--prefix", first)
    built = {"first": build_by_cmake(first, root / "build-first")}
    for name in ("service", "plain", "tune"):
        assert (built["first"] / name).exists()
    moved.parent.mkdir()
    first.rename(moved)
    return moved


@pytest.fixture(scope="module")
def programs(prefix, tmp_path_factory):
    return build_by_cmake(prefix, tmp_path_factory.mktemp("build-moved"))


def build_by_cmake(prefix, build):
    run("cmake", "-S", EXAMPLES, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return build


def environment(prefix, home):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TROUPE_", "DET_", "PYTHONPATH"))}
    env["LD_LIBRARY_PATH"] = str(library(prefix).parent)
    env["HOME"] = str(home)
    env["PATH"] = f"{pathlib.Path(sys.executable).parent}:{env['PATH']}"
    return env


def library(prefix):
    return next(prefix.rglob("libtroupe.so"))


def test_headers_compile_alone_and_bring_nothing_in(prefix, tmp_path):
    include = prefix / "include"
    compiler = os.environ.get("CXX", "c++")
    for header in ("troupe/embed.hpp", "troupe/result.hpp", "troupe/study.hpp", "troupe/embed_caf.hpp", "troupe.h"):
        source = tmp_path / "alone.cpp"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        used = run(compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-H", f"-I{include}", source) or ""
        listing = subprocess.run([compiler, "-std=c++20", "-M", f"-I{include}", source], capture_output=True, text=True, check=True).stdout + used
        assert "/boost/" not in listing and "/rocksdb/" not in listing and "nlohmann" not in listing, header
        assert ("/caf/" in listing) == (header == "troupe/embed_caf.hpp"), header
    plain = tmp_path / "alone.c"
    plain.write_text("#include <troupe.h>\n#include <troupe.h>\n")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{include}", plain)


def test_pkg_config_finds_the_moved_package(prefix, tmp_path):
    env = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("troupe.pc")).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "troupe", env=env).split()
    assert str(prefix) in os.path.realpath(next(f[2:] for f in flags if f.startswith("-L"))), flags
    run("cc", EXAMPLES / "plain.c", "-o", tmp_path / "plain", *flags)
    run("c++", "-std=c++20", EXAMPLES / "tune.cpp", "-o", tmp_path / "tune", *flags)
    run("c++", "-std=c++20", EXAMPLES / "service.cpp", "-o", tmp_path / "service", *flags, "-pthread")
    env = environment(prefix, tmp_path)
    assert "best loss" in run(tmp_path / "tune", env=env)
    assert "20 numbers heard" in run(tmp_path / "plain", tmp_path / "data", JOB, env=env)


def test_the_programs_run_from_the_moved_prefix(prefix, programs, tmp_path):
    env = environment(prefix, tmp_path)
    assert "best loss" in run(programs / "tune", env=env)
    out = run(programs / "plain", tmp_path / "plain-data", JOB, env=env)
    assert "status 200, completed, 20 numbers heard" in out, out


def test_the_service_trains_and_serves_the_best_model(prefix, programs, tmp_path):
    env = environment(prefix, tmp_path)
    service = subprocess.Popen([programs / "service", tmp_path / "data", JOB], env=env, stdout=subprocess.PIPE, text=True)
    try:
        port = int(service.stdout.readline().rsplit(":", 1)[1])

        def ask(path, method="GET"):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
            try:
                with urllib.request.urlopen(request, timeout=120) as got:
                    return got.status, json.loads(got.read())
            except urllib.error.HTTPError as refused:
                return refused.code, json.loads(refused.read())

        assert ask("/predict?x=1")[0] == 503
        for lr in (0.001, 0.1):
            status, made = ask(f"/train?lr={lr}", "POST")
            assert status == 202
            wait_for(lambda: ask(f"/runs/{made['run']}")[1]["state"] == "completed", 120, what=lambda: ask(f"/runs/{made['run']}"))
            assert ask(f"/runs/{made['run']}")[1]["step"] == 10
        status, answer = ask("/predict?x=0.5")
        assert status == 200 and answer["y"] == pytest.approx(0.5, abs=0.05) and answer["loss"] < 0.01, answer
        assert ask("/troupe/api/v1/experiments")[0] == 401, "the cluster's own API asks for a token"
        assert ask("/quit", "POST")[0] == 200
        assert service.wait(300) == 0
    finally:
        service.kill()
        service.wait()


@pytest.mark.parametrize("inside", [True, False], ids=["in_this_process", "as_a_child"])
def test_python_has_a_local_cluster(prefix, tmp_path, inside):
    script = tmp_path / "host.py"
    script.write_text(f"""
import troupe
with troupe.LocalCluster(slots=1, data_dir={str(tmp_path / 'data')!r}) as cluster:
    assert cluster.in_process == {inside}
    run = cluster.submit(entrypoint="python3 train.py", context={str(JOB)!r}, hparams={{"lr": 0.1}})
    heard = []
    run.on_metric(heard.append)
    assert run.wait() == "completed", run.why()
    assert len(heard) == 20 and heard[0]["step"] == 1, heard
    print("best", run.best()["hparams"])
    long = cluster.submit(entrypoint="sleep 1000")
    long.cancel()
    assert long.wait() == "canceled"
    try:
        cluster.submit(entrypoint="true", config="max_restarts: many")
    except troupe.ClusterError as wrong:
        print("refused", "max_restarts" in str(wrong))
""")
    env = environment(prefix, tmp_path)
    del env["LD_LIBRARY_PATH"]
    package = prefix / "share/troupe/python"
    if not inside: # a package that has no library in a folder above it
        package = shutil.copytree(package, tmp_path / "package")
        env["PATH"] = f"{prefix / 'bin'}:{env['PATH']}"
    env["PYTHONPATH"] = str(package)
    out = run(sys.executable, script, env=env)
    assert "best {'lr': 0.1}" in out and "refused True" in out, out


def test_what_the_package_does_not_have_is_named(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(x CXX)\n"
                                             "find_package(troupe 0.1 CONFIG REQUIRED COMPONENTS embed rockets)\n")
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
    assert done.returncode != 0 and "no component 'rockets'" in done.stderr, done.stderr
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(x CXX)\nfind_package(troupe 0.9 CONFIG REQUIRED)\n")
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "c", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
    assert done.returncode != 0 and "0.9" in done.stderr, done.stderr


def exported(file):
    lines = run("nm", "-D", "--defined-only", "--demangle", file).splitlines()
    return [line.split(None, 2)[2] for line in lines if len(line.split(None, 2)) == 3]


def test_only_what_is_promised_can_be_seen(prefix):
    names = [n for n in exported(library(prefix)) if not n.startswith("TROUPE_0")]
    c = sorted(n.split("@")[0] for n in names if n.startswith("troupe_"))
    assert c == ["troupe_call", "troupe_close", "troupe_free", "troupe_last_error", "troupe_open_json", "troupe_subscribe"]
    assert all("@@TROUPE_0" in n or n.startswith("troupe_") or n.startswith("troupe::v0::") for n in names), names
    versioned = run("readelf", "-W", "--dyn-syms", library(prefix))
    assert "troupe_call@@TROUPE_0" in versioned
    assert "libtroupe.so.0" in run("readelf", "-d", library(prefix))


def test_the_library_holds_no_command_line(prefix):
    names = run("nm", "-C", library(prefix))
    assert "troupe::node::" in names, "it has symbols"
    assert not [line for line in names.splitlines() if "troupe::cli::" in line or "troupe::launch::" in line][:5]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="they are linked there")
def test_a_host_maps_no_library_that_only_some_calls_need(prefix):
    needed = run("readelf", "-d", library(prefix))
    assert "librocksdb" in needed
    for late in ("libssl", "libcrypto", "libcaf_openssl", "libcurl", "libarchive"):
        assert late not in needed


@pytest.mark.skipif(not shutil.which("abidiff"), reason="abidiff is not installed (abigail-tools)")
def test_the_c_interface_is_that_of_the_baseline(prefix):
    baseline = SOURCE / "runtime/embed/abi"
    done = subprocess.run(["abidiff", "--kmi-whitelist", baseline / "troupe_c.symbols", "--no-added-syms", baseline / "libtroupe.abi",
                           library(prefix)], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nan addition: runtime/embed/abi/update"
