# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# cmake --install into a new prefix: every program runs from there with an empty environment, and its man page and bash completions,
# made by the program itself, are where they are looked for; what programs load later is there too.
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
for name in ("oscar-calibrate", "oscar-capture", "oscar-export", "oscar-validate", "oscar-zoo"):
    program = prefix / "bin" / name
    for options in (["--version"], ["--help"]):
        result = subprocess.run([program, *options], capture_output=True, text=True, env={}, cwd="/")
        if result.returncode != 0 or not result.stdout.startswith(name):
            sys.exit(f"{program} {options[0]}: {result.returncode} {result.stderr}")
    for path, options in FILES.items():
        printed = subprocess.run([program, *options], capture_output=True, check=True).stdout
        if not printed or (prefix / path.format(name)).read_bytes() != printed:
            sys.exit(f"{prefix / path.format(name)} is not what {name} {' '.join(options)} prints")
# Shared objects of ours load, with all that they name, on a machine without a GPU too.
for built in pathlib.Path(build, "modules").glob("*.so"):
    installed = list(prefix.glob(f"lib*/**/oscar/{built.name}"))
    if len(installed) != 1:
        sys.exit(f"{built.name} is installed {len(installed)} times")
    loading = f"import ctypes, os; ctypes.CDLL({str(installed[0])!r}, mode=os.RTLD_NOW)"
    if subprocess.run([sys.executable, "-c", loading]).returncode != 0:
        sys.exit(f"{installed[0]} does not load")
shutil.rmtree(prefix)
