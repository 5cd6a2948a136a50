# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs cmake --install into a new prefix. Every program must run there with an empty environment. Its man page and bash
# completion must be in their standard places and be what the program prints. Modules that are loaded at run time are
# installed, too.
# Usage: install_test.py CMAKE BUILD SCRATCH
import pathlib
import shutil
import subprocess
import sys

cmake, build, prefix = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).absolute()
FILES = {
    "share/man/man1/{}.1": ["--print-man"],
    "share/bash-completion/completions/{}": ["--print-completion", "bash"],
}
shutil.rmtree(prefix, ignore_errors=True)
subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
for name in ("oscar", "oscar-calibrate", "oscar-capture", "oscar-export", "oscar-validate", "oscar-zoo"):
    program = prefix / "bin" / name
    for options in (["--version"], ["--help"]):
        result = subprocess.run([program, *options], capture_output=True, text=True, env={}, cwd="/")
        if result.returncode != 0 or not result.stdout.startswith(name):
            sys.exit(f"{program} {options[0]}: {result.returncode} {result.stderr}")
    for path, options in FILES.items():
        printed = subprocess.run([program, *options], capture_output=True, check=True).stdout
        if not printed or (prefix / path.format(name)).read_bytes() != printed:
            sys.exit(f"{prefix / path.format(name)} is not what {name} {' '.join(options)} prints")
# `oscar VERB` must run the program oscar-VERB.
def run_oscar(*arguments):
    return subprocess.run([prefix / "bin/oscar", *arguments], capture_output=True, text=True, env={}, cwd="/")


for verb in ("calibrate", "capture", "validate", "export", "zoo"):
    expected = subprocess.run([prefix / f"bin/oscar-{verb}", "--help"], capture_output=True, text=True, env={}).stdout
    if not expected or run_oscar(verb, "--help").stdout != expected:
        sys.exit(f"oscar {verb} is not oscar-{verb}")
if not run_oscar("doctor", "--help").stdout.startswith("oscar-calibrate doctor:"):
    sys.exit("oscar doctor is not oscar-calibrate doctor")
for arguments, code, words in ((["calibrat"], 2, "the nearest is calibrate"), ([], 2, "calibrate, capture"), (["zoo", "pul"], 2, "the nearest is pull")):
    refused = run_oscar(*arguments)
    if refused.returncode != code or words not in refused.stderr:
        sys.exit(f"oscar {arguments}: {refused.returncode} {refused.stderr}")
(prefix / "bin/oscar-zoo").rename(prefix / "bin/zoo")
if run_oscar("zoo").returncode != 4 or "oscar zoo needs oscar-zoo" not in run_oscar("zoo").stderr:
    sys.exit(f"oscar zoo without oscar-zoo: {run_oscar('zoo').stderr}")
for words, expected in (("oscar cal", "calibrate"), ("oscar calibrate --bits-b", "--bits-by"), ("oscar doctor --tab", "--tables"),
                        ("oscar zoo publish --versio", "--version")):
    completed = subprocess.run(
        ["bash", "--norc", "-c", f". share/bash-completion/completions/oscar; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _oscar; "
         'echo "${COMPREPLY[*]}"'], capture_output=True, text=True, cwd=prefix).stdout
    if completed.strip() != expected:
        sys.exit(f"{words}<TAB>: {completed}")
# Our shared objects must load with all symbols resolved, even on a machine without a GPU.
for built in pathlib.Path(build, "modules").glob("*.so"):
    installed = list(prefix.glob(f"lib*/**/oscar/{built.name}"))
    if len(installed) != 1:
        sys.exit(f"{built.name} is installed {len(installed)} times")
    loading = f"import ctypes, os; ctypes.CDLL({str(installed[0])!r}, mode=os.RTLD_NOW)"
    if subprocess.run([sys.executable, "-c", loading]).returncode != 0:
        sys.exit(f"{installed[0]} does not load")
shutil.rmtree(prefix)
