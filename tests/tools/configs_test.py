# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Tests that configs/NAME.yaml is what `oscar-NAME --print-config` prints below the licence header, and that it reads
# back unchanged. Every other file of configs/ must name its program in its header ("For oscar-NAME:") and set only what
# that program accepts.
# Usage: configs_test.py CONFIGS PROGRAM...
import os
import pathlib
import re
import subprocess
import sys
import tempfile


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
    # Lists may span several lines, and names may have quotes that they do not need.
    said = [line for line in re.sub(r"\n[ \t]+", " ", text).splitlines() if line and not line.startswith("#")]
    if not said:
        sys.exit(f"{recipe} says nothing")
    for line in said:
        if line.replace('"', "") not in resolved.replace('"', "").splitlines():
            sys.exit(f"{recipe}: {program} does not resolve it to {line!r}")


# Imitates Slurm's sbatch for the array script: jobs run immediately, one after another.
SBATCH = """#!/bin/bash
array=
while [[ $1 == --* ]]; do
  [[ $1 == --array=* ]] && array=${1#*=}
  shift
done
if [ -z "$array" ]; then
  SLURM_JOB_ID=8 exec bash "$@"
fi
for ((i = ${array%-*}; i <= ${array#*-}; ++i)); do
  SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=$i bash "$@" >&2 || exit
done
echo 7
"""


def check_array(script, calibrate, model):
    with tempfile.TemporaryDirectory() as folder:
        def run(**more):
            variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SHARDS": "2", "OUTPUT": f"{folder}/out", **more}
            return subprocess.run(
                [script, model, "--device", "cpu", "--tokens", "5000", "--max-sequence", "1500", "--no-auto", "--clip", "fixed"],
                capture_output=True, text=True, env=variables, check=False)

        scontrol = f"#!/bin/bash\necho \"$@\" > {folder}/requeued\n"
        for name, text in (("sbatch", SBATCH), ("srun", "#!/bin/bash\nexec \"$@\"\n"), ("scontrol", scontrol)):
            path = pathlib.Path(folder, name)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        stopped = pathlib.Path(folder, "oscar-calibrate")
        stopped.write_text("#!/bin/bash\nexit 130\n", encoding="utf-8")
        stopped.chmod(0o755)
        if run(SLURM_JOB_ID="9", SLURM_ARRAY_TASK_ID="1").returncode != 130 or pathlib.Path(folder, "requeued").read_text() != "requeue 9\n":
            sys.exit(f"{script}: a job that was stopped is not requeued")
        stopped.unlink()
        stopped.symlink_to(calibrate)
        made = run()
        if made.returncode != 0 or not pathlib.Path(folder, "out", "manifest.json").exists():
            sys.exit(f"{script}: exit {made.returncode}: {made.stderr}")


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
    configs = pathlib.Path(sys.argv[1]).resolve()
    check_array(configs / "cluster" / "slurm_array.sh", pathlib.Path(calibrate).resolve(), configs.parent / "tests" / "data" / "tiny-qwen3")
