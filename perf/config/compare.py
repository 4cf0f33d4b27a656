"""Prints how fast a configuration is checked by our code, beside the schema check of Determined's Python client.

The client 0.38.1 leaves the check to its server, and 0.21.0 is the last version that contains it. Only the modules of the check are
loaded, because the package's own imports need PyTorch and more. Both read the same text in one run. The client checks it; our code
checks and completes it. The client's packages are installed into a virtual environment below the build folder.

usage: perf/config/compare.py BUILD_DIR
"""

import json
import pathlib
import platform
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "test" / "differential"))
from client_environment import client_python  # noqa: E402

TYPICAL = HERE / "typical.yaml"

CLIENT = r'''
import json, pathlib, sys, time, types
root = next(pathlib.Path(p) / "determined" for p in sys.path if (pathlib.Path(p) / "determined" / "common").is_dir())
for name, path in (("determined", root), ("determined.common", root / "common")):
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module
from determined.common.schemas import expconf
from determined.common.schemas.expconf import _gen
import yaml
for schema in _gen.schemas.values():
    schema.pop("$schema", None)  # with it a newer jsonschema skips the keywords of Determined at every $ref
text = pathlib.Path(sys.argv[1]).read_text()
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
url = "http://determined.ai/schemas/expconf/v0/experiment.json"
read = lambda: yaml.load(text, Loader=loader)
errors = expconf.sanity_validation_errors(read(), url)
assert not errors, errors
def cost(job, times):
    begin = time.process_time()
    for _ in range(times):
        job()
    return (time.process_time() - begin) / times * 1e6
print(json.dumps({"read_us": cost(read, 50), "check_us": cost(lambda: expconf.sanity_validation_errors(read(), url), 50)}))
'''


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    ours = json.loads(subprocess.run([str(build / "perf/config/perf_config"), str(TYPICAL)], check=True,
                                     capture_output=True, text=True).stdout)
    client = json.loads(subprocess.run([str(client_python(build)), "-c", CLIENT, str(TYPICAL)], check=True,
                                       capture_output=True, text=True).stdout)
    lines = len(TYPICAL.read_text().splitlines())
    print(f"check and complete a configuration of {lines} lines; CPU time of one core")
    print(f"  troupe                      {ours['cpu_us']:10.1f} us   {ours['per_second_of_cpu']:10.0f} /s"
          f"   (p50 {ours['p50_us']:.1f} us, p99 {ours['p99_us']:.1f} us)")
    print(f"  determined client, check    {client['check_us']:10.1f} us   {1e6 / client['check_us']:10.0f} /s"
          f"   (of it reading YAML {client['read_us']:.1f} us)")
    print(f"  ratio                       {client['check_us'] / ours['cpu_us']:10.1f}")
    print(f"machine: {platform.machine()}, {platform.system()} {platform.release()}, {time.strftime('%Y-%m-%d')}")
    if ours["p99_us"] > 1000:
        print("note: p99 above 1 ms")


if __name__ == "__main__":
    main()
