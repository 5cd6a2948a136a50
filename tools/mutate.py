#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# mutate.py [--build DIR] [--count N] [--seed S] [FILE.cc]...: do the tests notice? Changes one operator, index, constant or transpose of
# the numeric core at a time, compiles that one file, links it in front of the finished objects of its test program
# and runs that. A mutant that no test kills is printed. Needs the test programs built; changes no file of the tree.
# Trap: the linker takes the first definition, so a mutant of an inline function in a header would change nothing: .cc only.
import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

# Where mutants are made, and the target whose tests must kill them.
AREAS = [("linalg", "oscar_linalg_tests"), ("calib/fit", "oscar_fit_test"), ("calib/choose", "oscar_fit_test"),
         ("calib/moments", "oscar_fit_test"), ("export/formats", "oscar_formats_tests")]

# What is replaced, by what; the first group that matches is the place.
CHANGES = [(r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "),
           (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+= ", " -= "),
           (r"\+\+", "--"), (r"\.transpose\(\)", ""), (r"std::min\b", "std::max"), (r"std::max\b", "std::min"), (r"\(-", "("),
           (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" % ", " / "), (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\b2\b", "3"),
           (r"\b0\.5\b", "0.25"), (r"std::abs\(", "("), (r"std::sqrt\(", "("), (r"\((\w+), (\w+)\)", r"(\2, \1)")]


def mutants(path):
    """(line number, column, old line, new line) for every change that can be made."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        if not code.strip() or code.lstrip().startswith(("#", "static_assert", "OSCAR_CHECK", "throw", "using", "template")):
            continue
        if '"' in code or "fmt::" in code:
            continue  # words of errors
        for pattern, new in CHANGES:
            for match in re.finditer(pattern, code):
                changed = code[:match.start()] + match.expand(new) + code[match.end():]
                if changed != code:
                    yield number, line, changed


def link_command(build, target):
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True).stdout
    lines = [line for line in commands.split("\n") if re.search(r" -o \S*" + target + r"(\s|$)", line) and " -c " not in line]
    return lines[-1]


def run(command, timeout, **options):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout, **options).returncode
    except subprocess.TimeoutExpired:
        return "timeout"


def verdict(root, build, path, target, source, scratch):
    mutated, object_file, program = (os.path.join(scratch, name) for name in ("mutant.cc", "mutant.o", "mutant_test"))
    with open(mutated, "w", encoding="utf-8") as file:
        file.write(source)
    compiled = run(["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-I" + root, "-I/usr/include/eigen3", "-c", mutated,
                    "-o", object_file], 300)
    if compiled != 0:
        return "does not compile"
    link = link_command(build, target)
    link = re.sub(r"( -o )(\S+)", lambda m: f" {shlex.quote(object_file)} -Wl,--allow-multiple-definition -o {shlex.quote(program)}", link, count=1)
    link = re.sub(r"&& cd \S+ && .*$", "", link)  # no discovery of tests
    if run(link, 300, shell=True, cwd=build) != 0:
        return "does not link"
    result = run([program, "--gtest_brief=1", "--gtest_fail_fast"], 120, cwd=scratch, env=dict(os.environ, OMP_NUM_THREADS="1"))
    return "SURVIVED" if result == 0 else "killed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build = os.path.abspath(arguments.build)
    candidates = []
    for area, target in AREAS:
        for name in sorted(os.listdir(os.path.join(root, area))):
            path = f"{area}/{name}"
            if name.endswith(".cc") and (not arguments.files or path in arguments.files):
                candidates += [(path, target, *mutant) for mutant in mutants(os.path.join(root, path))]
    random.Random(arguments.seed).shuffle(candidates)
    counts = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path, target, number, old, new in candidates:
            if counts.get("killed", 0) + counts.get("SURVIVED", 0) >= arguments.count:
                break
            with open(os.path.join(root, path), encoding="utf-8") as file:
                lines = file.read().split("\n")
            lines[number] = new
            result = verdict(root, build, path, target, "\n".join(lines), scratch)
            counts[result] = counts.get(result, 0) + 1
            if result == "SURVIVED":
                print(f"{path}:{number + 1}: survived:\n  - {old.strip()}\n  + {new.strip()}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())) + f"; of {len(candidates)} possible mutants")
    sys.exit(1 if counts.get("SURVIVED") else 0)


if __name__ == "__main__":
    main()
