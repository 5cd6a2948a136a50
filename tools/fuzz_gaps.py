#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# fuzz_gaps.py HARNESS [--path REGEX] [DIR]...: what no input of tests/fuzz/kept.tar.gz, tests/fuzz/corpus or the DIRs reaches, in files
# that the harness reaches: lines with a branch that is never taken, and, marked U, lines that are never run. An input for each of
# them, and a campaign from these, finds what hours of mutations do not (tests/fuzz/RESULTS.md). Builds build/coverage the first
# time: clang and llvm, ten minutes of two cores.
import argparse
import collections
import pathlib
import re
import subprocess
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/coverage"
PROGRAM = BUILD / "tests/fuzz/oscar_fuzz"


def build():
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "fuzz", "-B", BUILD, "-DOSCAR_SANITIZE=", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
                        "-DCMAKE_CXX_FLAGS=-fprofile-instr-generate -fcoverage-mapping"], cwd=ROOT, check=True)
    subprocess.run(["ninja", "-C", BUILD, "oscar_fuzz"], check=True)


def tool(name):  # Debian's clang 14 comes with llvm-cov-14
    version = re.search(r"version (\d+)", subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True).stdout)[1]
    return f"{name}-{version}"


def coverage(harness, folders):
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(ROOT / "tests/fuzz/kept.tar.gz") as kept:
            members = [m for m in kept if m.isfile() and pathlib.PurePath(m.name).parts[0] == harness]
            kept.extractall(scratch, members)
        everything = [pathlib.Path(scratch) / harness, ROOT / "tests/fuzz/corpus" / harness, *folders]
        raw, profile = f"{scratch}/raw", f"{scratch}/profile"
        subprocess.run([PROGRAM, "-runs=0", "-shuffle=0", "-entropic=0", "-max_len=65536", *[d for d in everything if d.is_dir()]],
                       env={"OSCAR_FUZZ_HARNESS": harness, "LLVM_PROFILE_FILE": raw, "TMPDIR": scratch}, stderr=subprocess.DEVNULL, check=True)
        subprocess.run([tool("llvm-profdata"), "merge", "-sparse", raw, "-o", profile], check=True)
        return subprocess.run([tool("llvm-cov"), "export", "-format=lcov", f"-instr-profile={profile}", PROGRAM],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("harness")
    parser.add_argument("--path", default="", help="of the sources, a regular expression")
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    given = parser.parse_intermixed_args()
    build()
    runs, untaken = collections.defaultdict(dict), collections.defaultdict(set)
    for line in coverage(given.harness, given.folders).splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            path = pathlib.Path(rest)
        elif kind == "DA":
            number, count = rest.split(",")[:2]
            runs[path][int(number)] = int(count)
        elif kind == "BRDA" and rest.endswith(",0"):
            untaken[path].add(int(rest.split(",")[0]))
    for path, lines in sorted(runs.items()):
        if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "tests") or not re.search(given.path, str(path)):
            continue
        gaps = [n for n, count in sorted(lines.items()) if count == 0 or n in untaken[path]]
        if not gaps or not any(lines.values()):
            continue
        print(path.relative_to(ROOT))
        text = path.read_text().split("\n")
        for n in gaps:
            print(f"{n:6} {' ' if lines[n] else 'U'} {text[n - 1].strip()[:140]}")


main()
