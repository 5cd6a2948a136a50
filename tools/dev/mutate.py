#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# mutate.py [--build DIR] [--count N] [--seed S] [--area A] [--jobs N] [--seconds S] [--log FILE] [--again LOG] [FILE]...: checks
# whether the tests notice defects. Changes one operator, index, constant or transpose of the numeric core at a time, compiles
# that one file, and links it before the finished objects of its test programs. Then runs these programs one after another, as far
# as they are built. Prints every mutant that no test kills; --again repeats those in a log.
# Changes no file of the tree. A changed header is in a separate folder, and its .cc and the test that includes it are compiled.
# Trap: this relies on the linker taking the first definition, and on -fPIC, which keeps calls in the other objects replaceable.
import argparse
import concurrent.futures
import functools
import glob
import importlib.util
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

LINKER = "-fuse-ld=lld" if shutil.which("ld.lld") else ""
FORMATS = {"oscar_formats_tests": "*-*Torch*", "oscar_runtimes_test": "*-Consumer*", "oscar_served_test": "*", "oscar_artifact_test": "*"}
# Area: the folder to mutate, the targets whose tests must kill the mutants, and which tests of
# each.
AREAS = {
    "linalg": ("linalg", {"oscar_linalg_tests": "*", "oscar_fit_test": "*", "oscar_calib_test": "*"}),
    "fit": ("calib/fit", {"oscar_fit_test": "*", "oscar_calib_test": "*"}),
    "cache": ("calib/cache", {"oscar_calib_test": "*"}),
    "formats": ("export/formats", FORMATS),
    "pt": ("export/formats/pt", FORMATS),
    "runtimes": ("export/runtimes", {"oscar_runtimes_test": FORMATS["oscar_runtimes_test"], **FORMATS}),
}

# (pattern, replacement) pairs.
CHANGES = [(r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "),
           (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+= ", " -= "),
           (r"\+\+", "--"), (r"\.transpose\(\)", ""), (r"std::min\b", "std::max"), (r"std::max\b", "std::min"), (r"\(-", "("),
           (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" % ", " / "), (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\b2\b", "3"),
           (r"\b0\.5\b", "0.25"), (r"std::abs\(", "("), (r"std::sqrt\(", "("), (r"\((\w+), (\w+)\)", r"(\2, \1)")]


def mutants(path):
    """Yields (line number, old line, new line) for every possible change."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        if not code.strip() or code.lstrip().startswith(("#", "static_assert", "OSCAR_CHECK", "throw", "using", "template")):
            continue
        if '"' in code or "fmt::" in code or code.startswith("//"):
            continue  # text of messages
        for pattern, new in CHANGES:
            for match in re.finditer(pattern, code):
                changed = code[:match.start()] + match.expand(new) + code[match.end():]
                if changed != code:
                    yield number, line, changed


@functools.cache
def torch_headers(root):
    """Returns the folder of the headers that setup.sh unpacked, else of this Python's torch."""
    own = glob.glob(os.path.join(root, ".deps/python/lib/python3*/site-packages/torch/include"))
    found = importlib.util.find_spec("torch")
    return own[0] if own or not found else os.path.join(os.path.dirname(found.origin), "include")


def test_of(root, header):
    """Returns a test that includes the header, preferably the one of the same name."""
    folder = os.path.join(root, "tests", os.path.dirname(header))
    own = os.path.basename(header)[:-2] + "_test.cc"
    names = sorted((n for n in os.listdir(folder) if n.endswith("_test.cc")), key=lambda n: n != own) if os.path.isdir(folder) else []
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            if f'#include "{header}"' in file.read():
                return os.path.join(folder, name)
    return None


def link_command(build, target):
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True).stdout
    lines = [line for line in commands.split("\n") if re.search(r" -o \S*" + target + r"(\s|$)", line) and " -c " not in line]
    return re.sub(r"&& cd \S+ && .*$", "", lines[-1])  # drops the discovery of tests


@functools.cache
def built(build, target):
    return bool(glob.glob(f"{build}/tests/**/{target}", recursive=True))


def run(command, timeout, **options):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout, **options).returncode
    except subprocess.TimeoutExpired:
        return "timeout"


class Workshop:
    """Compiles, links and runs mutants in its own folder."""

    def __init__(self, root, build, scratch):
        self.root, self.build, self.scratch, self.links = root, build, scratch, {}

    def verdict(self, path, targets, source):
        """Returns the verdict on a mutant. A header is judged with its own .cc first, and then with its test."""
        overlay = os.path.join(self.scratch, "overlay")
        header = path.endswith(".h")
        mutated = os.path.join(overlay, path) if header else os.path.join(self.scratch, "mutant.cc")
        own = os.path.join(self.root, path[:-2] + ".cc")
        os.makedirs(os.path.dirname(mutated), exist_ok=True)
        with open(mutated, "w", encoding="utf-8") as file:
            file.write(source)
        if not header:
            return self.compiled(mutated, targets)
        verdict = self.compiled(own, targets) if os.path.exists(own) else "SURVIVED"
        if verdict == "SURVIVED":
            first = next(iter(targets))  # only this program contains its test
            verdict = self.compiled(test_of(self.root, path), {first: targets[first]})
        os.remove(mutated)
        return verdict

    def compiled(self, file, targets):
        object_file, program = os.path.join(self.scratch, "mutant.o"), os.path.join(self.scratch, "mutant_test")
        torch = torch_headers(self.root)
        command = ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-D_GLIBCXX_ASSERTIONS", "-ffp-contract=off",
                   "-I" + os.path.join(self.scratch, "overlay"), "-I" + self.root,
                   "-isystem", "/usr/include/eigen3", "-isystem", "/usr/include/hdf5/serial", "-idirafter", torch,
                   "-idirafter", torch + "/torch/csrc/api/include", "-DFMT_SHARED", f'-DOSCAR_PYTHON="{sys.executable}"', "-c", file, "-o", object_file]
        if run(command, 600) != 0:
            return "does not compile"
        verdict = "SURVIVED"
        for target, tests in targets.items():
            if built(self.build, target) and verdict == "SURVIVED":
                found = self.judge(object_file, program, target, tests)
                # A result other than "killed" counts only from the first program.
                if found == "killed" or target == next(iter(targets)):
                    verdict = found
        return verdict

    def judge(self, object_file, program, target, tests):
        if target not in self.links:
            self.links[target] = link_command(self.build, target)
        options = f" {LINKER} -Wl,--allow-multiple-definition -o {shlex.quote(program)}"
        link = re.sub(r" -o \S+", lambda m: options, self.links[target], count=1)
        # Inserts the object after the compiler's name, so that it precedes all other objects.
        link = re.sub(r"^(: && )?\S+ ", lambda m: m.group(0) + shlex.quote(object_file) + " ", link, count=1)
        if run(link, 600, shell=True, cwd=self.build) != 0:
            return "does not link"
        result = run([program, "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=" + tests], 120, cwd=self.scratch,
                     env=dict(os.environ, OMP_NUM_THREADS="1"))
        return "SURVIVED" if result == 0 else "killed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="none begins after so many")
    parser.add_argument("--area", choices=sorted(AREAS), action="append")
    parser.add_argument("--log", help="a line for each mutant")
    parser.add_argument("--again", help="such a log: its survivors alone")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    build = os.path.abspath(arguments.build)
    candidates = []
    for area in arguments.area or sorted(AREAS):
        folder, targets = AREAS[area]
        for name in sorted(os.listdir(os.path.join(root, folder))):
            path = f"{folder}/{name}"
            if arguments.files and path not in arguments.files:
                continue
            if name.endswith(".cc") or (name.endswith(".h") and test_of(root, path)):
                candidates += [(path, targets, *mutant) for mutant in mutants(os.path.join(root, path))]
    if arguments.again:
        with open(arguments.again, encoding="utf-8") as log:
            again = {tuple(line.rstrip("\n").split("\t")[1:]) for line in log if line.startswith("SURVIVED")}
        candidates = [c for c in candidates if (f"{c[0]}:{c[2] + 1}", c[3].strip(), c[4].strip()) in again]
    random.Random(arguments.seed).shuffle(candidates)
    counts, lock, waiting = {}, threading.Lock(), iter(candidates)
    until = time.monotonic() + arguments.seconds

    def work(scratch, log):
        workshop = Workshop(root, build, scratch)
        while True:
            with lock:
                candidate = next(waiting, None)
                judged = counts.get("killed", 0) + counts.get("SURVIVED", 0)
            if candidate is None or judged >= arguments.count or time.monotonic() > until:
                return
            path, targets, number, old, new = candidate
            with open(os.path.join(root, path), encoding="utf-8") as file:
                lines = file.read().split("\n")
            lines[number] = new
            result = workshop.verdict(path, targets, "\n".join(lines))
            with lock:
                counts[result] = counts.get(result, 0) + 1
                log.write(f"{result}\t{path}:{number + 1}\t{old.strip()}\t{new.strip()}\n")
                log.flush()
                if result == "SURVIVED":
                    print(f"{path}:{number + 1}: survived:\n  - {old.strip()}\n  + {new.strip()}", flush=True)

    with tempfile.TemporaryDirectory() as scratch, open(arguments.log or os.devnull, "a", encoding="utf-8") as log, \
         concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        folders = [os.path.join(scratch, str(job)) for job in range(arguments.jobs)]
        for folder in folders:
            os.mkdir(folder)
        for done in [pool.submit(work, folder, log) for folder in folders]:
            done.result()
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())) + f"; of {len(candidates)} possible mutants")
    sys.exit(1 if counts.get("SURVIVED") else 0)


if __name__ == "__main__":
    main()
