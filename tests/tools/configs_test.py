# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# configs/NAME.yaml is what `oscar-NAME --print-config` prints (below its licence header), and reads back as itself.
# Every other file of configs/ names its program in its header ("For oscar-NAME:") and says nothing that this program does not take over.
# Usage: configs_test.py CONFIGS PROGRAM...
import pathlib
import re
import subprocess
import sys


def check(program, sample):
    def print_config(*arguments):
        return subprocess.run([program, *arguments, "--print-config"], capture_output=True, text=True, check=True).stdout

    header, _, body = sample.read_text(encoding="utf-8").partition("\n\n")
    if "SPDX-License-Identifier" not in header:
        sys.exit(f"{sample}: no licence header, then an empty line")
    if body != print_config():
        sys.exit(f"{sample} is not what {program} --print-config prints: write it anew below its header")
    if body != print_config("--config", str(sample)):
        sys.exit(f"{sample} does not read back as itself")


def check_recipe(programs, recipe):
    text = recipe.read_text(encoding="utf-8")
    header = text.partition("\n\n")[0]
    program = next((path for name, path in programs.items() if f"# For {name}:" in header), None)
    if "SPDX-License-Identifier" not in header or program is None:
        sys.exit(f"{recipe}: no licence header with a line \"For PROGRAM:\", then an empty line")
    resolved = subprocess.run([program, "--config", str(recipe), "--print-config"], capture_output=True, text=True, check=True).stdout
    # Lists may have several lines, and names quotes that they do not need.
    said = [line for line in re.sub(r"\n[ \t]+", " ", text).splitlines() if line and not line.startswith("#")]
    if not said:
        sys.exit(f"{recipe} says nothing")
    for line in said:
        if line.replace('"', "") not in resolved.replace('"', "").splitlines():
            sys.exit(f"{recipe}: {program} does not resolve it to {line!r}")


programs = {pathlib.Path(path).name: path for path in sys.argv[2:]}
samples = {pathlib.Path(sys.argv[1], name.removeprefix("oscar-") + ".yaml"): path for name, path in programs.items()}
for sample, path in samples.items():
    check(path, sample)
for recipe in set(pathlib.Path(sys.argv[1]).rglob("*.yaml")) - samples.keys():
    check_recipe(programs, recipe)
calibrate = programs.get("oscar-calibrate")
if calibrate is not None:
    tables = subprocess.run([calibrate, "doctor", "--tables"], capture_output=True, text=True, check=True).stdout
    for recipe in pathlib.Path(sys.argv[1], "models").glob("*.yaml"):
        if recipe.stem not in re.findall(r"\w+", tables):
            sys.exit(f"{recipe}: no model_type of that name")
