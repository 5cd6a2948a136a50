# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# configs/NAME.yaml is what `oscar-NAME --print-config` prints (below its licence header), and reads back as itself.
# Usage: configs_test.py CONFIGS PROGRAM...
import pathlib
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


for path in sys.argv[2:]:
    check(path, pathlib.Path(sys.argv[1], pathlib.Path(path).name.removeprefix("oscar-") + ".yaml"))
