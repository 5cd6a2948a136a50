# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs tools/dev/compare_methods.sh with stand-ins for its programs: tests which it starts, in which order, and that it
# resumes where it stopped. The real programs must accept every command line that it makes.
# Usage: compare_methods_test.py SCRIPT BIN
import os
import pathlib
import subprocess
import sys
import tempfile

script, real = sys.argv[1], pathlib.Path(sys.argv[2])
STAND_IN = """#!/usr/bin/env python3
import os, sys
log = os.environ["LOG"]
if any(word in sys.argv for word in os.environ.get("FAIL", "-").split()):
    sys.exit(3)
with open(log, "a") as file:
    file.write("\\t".join([os.path.basename(sys.argv[0])] + sys.argv[1:]) + "\\n")
os.makedirs(sys.argv[sys.argv.index("-o") + 1])
"""


def fail(message):
    sys.exit(f"compare_methods.sh: {message}")


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    log, out, models = scratch / "log", scratch / "out", scratch / "models"
    (scratch / "bin").mkdir()
    for name in ("oscar-calibrate", "oscar-validate"):
        program = scratch / "bin" / name
        program.write_text(STAND_IN)
        program.chmod(0o755)
    for name in ("one", "two", "no-model"):
        (models / name).mkdir(parents=True)
    for name in ("one", "two"):
        (models / name / "config.json").touch()
    (scratch / "calibration").mkdir()
    (scratch / "calibration" / "heldout.jsonl").touch()

    def run(*options, **environment):
        log.unlink(missing_ok=True)
        variables = {**os.environ, "OSCAR_BIN": str(scratch / "bin"), "LOG": str(log), **environment}
        code = subprocess.run([script, models, out, *options], env=variables, stdout=subprocess.DEVNULL).returncode
        return code, [line.split("\t") for line in log.read_text().splitlines()] if log.exists() else []

    second = str(out / "reports" / "two")
    code, calls = run("--device", "cuda", "--rows", "8", FAIL=str(out / "artifacts" / "two"))
    if code == 0 or [call[0] for call in calls] != ["oscar-calibrate", "oscar-validate"]:
        fail(f"a calibration that fails ends it after what came before, not {code} {calls}")
    made = list(calls)
    code, calls = run("--device", "cuda", "--rows", "8", "--results")
    if code != 0 or [call[0] for call in calls] != ["oscar-calibrate", "oscar-validate", "oscar-validate"]:
        fail(f"goes on where it stopped, not {code} {calls}")
    made += calls
    if second not in calls[1] or "--rows" not in calls[1] or "configs/compare.yaml" not in calls[1]:
        fail(f"validates the second model as configs/compare.yaml and the options say: {calls[1]}")
    if str(out / "reports" / "one") not in calls[2] or second not in calls[2] or "export/simulate/RESULTS.md" not in calls[2]:
        fail(f"combines both reports into the table: {calls[2]}")
    if not any(word.endswith("calibration/heldout.jsonl") for word in calls[1]):
        fail(f"takes the texts beside the models: {calls[1]}")
    for call in made:
        print_config = [str(real / call[0]), *call[1:], "--print-config"]
        result = subprocess.run(print_config, capture_output=True, text=True, cwd=pathlib.Path(script).parents[2])
        if result.returncode != 0 or "device" in call and "\ndevice: cuda\n" not in result.stdout:
            fail(f"{call}: {result.stderr}")
    if subprocess.run([script, models], capture_output=True).returncode != 2:
        fail("without OUT it is a usage error")
