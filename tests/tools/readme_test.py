#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Runs README.md: every command of an indented block that starts with "$ ", in order, in a folder of its own, and compares what
it prints with what is shown below it. Times, sizes, digests and the machine may differ; other numbers by half. A line "..." stands
for any lines. With --update the shown output is replaced by what the commands print now (a block that has "..." keeps it).

    readme_test.py README.md PROGRAMS_DIR WORK_DIR [--update]
"""
import os
import re
import shutil
import subprocess
import sys

VOLATILE = [
    (r"\b[0-9a-f]{12,64}\b", "<digest>"),
    (r"\b\d+(\.\d+)? (s|min|h)\b( \d+ (s|min)\b)*", "<time>"),
    (r"\b\d+ tokens/s\b", "<rate>"),
    (r"\b\d+\.\d+ (GB/s|GB|MB)\b", "<size>"),
    (r"\b\d+ bytes\b", "<bytes>"),
    (r"\(\d+ threads?, \w+\)", "<machine>"),
    (r"(?<=latest  )\d+\b", "<bytes>"),
]
NUMBER = re.compile(r"^[-+]?\d+(\.\d+)?(e[-+]\d+)?$")


class Command:
    def __init__(self, text, first, last):
        self.text, self.first, self.last, self.shown = text, first, last, []  # lines of the README; shown: (line number, text)


def commands_of(lines):
    commands, inside = [], None
    for i, line in enumerate(lines):
        goes_on = inside and i + 1 < len(lines) and lines[i + 1].startswith("    ")  # an empty line inside a block
        text = line[4:] if line.startswith("    ") else "" if not line and goes_on else None
        if text is None:
            inside = None
        elif text.startswith("$ "):
            inside = Command(text[2:], i, i)
            commands.append(inside)
        elif inside and not inside.shown and inside.text.endswith("\\"):
            inside.text, inside.last = inside.text[:-1] + " " + text.strip(), i
        elif inside:
            inside.shown.append((i, text))
    return commands


def masked(line):
    for pattern, name in VOLATILE:
        line = re.sub(pattern, name, line)
    return line.split()


def same_word(shown, printed):
    a, b = (word.rstrip(".").strip("(),;:") for word in (shown, printed))
    if a == b:
        return True
    if not (NUMBER.match(a) and NUMBER.match(b)):
        return False
    if abs(float(a)) < 1e-9 or "e-" in a:  # an error near zero: only its order of magnitude counts
        return abs(float(b)) < 1e-9 or float(b) < 10 * float(a)
    return abs(float(a) - float(b)) <= max(0.5 * abs(float(a)), 5e-3 if "." in a else 0)


def same_line(shown, printed):
    a, b = masked(shown), masked(printed)
    return len(a) == len(b) and all(same_word(x, y) for x, y in zip(a, b))


def difference(shown, printed):
    """The first shown line that is not printed, or None. Rules of tables may be longer or shorter."""
    at, anywhere = 0, False
    for line in shown:
        if line.strip() == "...":
            anywhere = True
            continue
        if not line.strip("- ") and line.strip():
            at += 0 if anywhere else 1
            continue
        while at < len(printed) and anywhere and not same_line(line, printed[at]):
            at += 1
        if at >= len(printed) or not same_line(line, printed[at]):
            return f"shown:   {line}\nprinted: {printed[at] if at < len(printed) else '(nothing more)'}"
        at, anywhere = at + 1, False
    return None if anywhere or at == len(printed) else f"printed and not shown: {printed[at]}"


def main():
    readme, programs, work = (os.path.abspath(p) for p in sys.argv[1:4])
    update = "--update" in sys.argv
    root = os.path.dirname(readme)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    for name in ("tests", "tools", "configs"):
        os.symlink(os.path.join(root, name), os.path.join(work, name))
    with open(readme, encoding="utf-8") as file:
        lines = file.read().split("\n")
    commands = commands_of(lines)
    if not commands:
        sys.exit(f"{readme}: shows no commands")
    environment = dict(os.environ, PATH=programs + os.pathsep + os.environ["PATH"])
    failures, replaced = 0, {}
    for command in commands:
        run = subprocess.run(["bash", "-c", command.text], cwd=work, env=environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=False)
        printed = run.stdout.replace(work + "/", "").rstrip("\n").split("\n")
        shown = [text for _, text in command.shown]
        while shown and not shown[-1].strip():
            shown.pop()
        problem = f"exit code {run.returncode}\n{run.stdout[-3000:]}" if run.returncode else None
        if update and not problem and shown and "..." not in shown:
            replaced[command.first] = (command.shown[0][0], command.shown[len(shown) - 1][0], printed)
        elif not problem and shown:
            problem = difference(shown, printed)
        if problem:
            failures += 1
            print(f"README.md:{command.first + 1}: $ {command.text}\n{problem}\n")
    for first, last, printed in sorted(replaced.values(), reverse=True):
        lines[first:last + 1] = ["    " + line if line else "" for line in printed]
    if replaced:
        with open(readme, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    print(f"{len(commands)} commands of README.md run, {failures} wrong")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
