# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks the statements of configs/docs: files and folders that it names exist, types and functions are in the files
# given for them, format versions equal those of the source, and programs have the options that it shows.
# Usage: docs_test.py ROOT PROGRAM...
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
PROGRAMS = {pathlib.Path(path).name: path for path in sys.argv[2:]}
LINK = re.compile(r"\]\(([^)#:]+)\)")
PATH = re.compile(r"`((?:linalg|capture|calib|export|zoo|configs|tools|tests)/[\w./-]*)`")
VERSION = re.compile(r"\bk\w*Version\w* = \"?(\d+)")
problems = []


def text_of(path):  # the text of a header and its source file; "" if neither exists
    return "".join(file.read_text(encoding="utf-8") for file in {path, path.with_suffix(".cc")} if file.is_file())


def check_paths(page, text):
    for link in LINK.findall(text):
        if not (page.parent / link).exists():
            problems.append(f"{page.name}: no file {link}")
    for path in PATH.findall(text):
        if not (ROOT / path).exists() and not list(ROOT.glob(path + ".*")):
            problems.append(f"{page.name}: no file {path}")


def check_types(page, text):  # matches | `Type`, `Type` | `file` | and `Type` in `file`
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| `([\w/.]+)` \|", text, re.M) + re.findall(r"(`\w+`) in\s+`([\w/]+\.\w+)`", text)
    for names, path in rows:
        for name in re.findall(r"\w+", names):
            if not re.search(rf"\b{name}\b", text_of(ROOT / path)):
                problems.append(f"{page.name}: no {name} in {path}")


def check_versions(page, text):
    for row in text.splitlines():
        named = re.search(r"`(?:oscar-[a-z-]+|state\.json|shard\.json|-signatures)` (\d+)", row)
        if not named:
            continue
        sources = [page.parent / link for link in LINK.findall(row) if link.endswith((".h", ".cc"))]
        known = {number for source in sources for number in VERSION.findall(text_of(source))}
        if named[1] not in known:
            problems.append(f"{page.name}: version {named[1]}, but the source has {sorted(known)}: {row[:60]}")


def check_options(page, text):
    helps = {}
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        command = re.match(r"    (?:\$ )?(oscar-\w+) (.*)", line)
        if not command or command[1] not in PROGRAMS:
            continue
        program, rest = command.groups()
        verb = [rest.split()[0]] if program == "oscar-zoo" else []
        key = (program, *verb)
        if key not in helps:
            helps[key] = subprocess.run([PROGRAMS[program], *verb, "--help-all"], capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest.partition(" # ")[0]):
            if not re.search(rf"{option}\b", helps[key]):
                problems.append(f"{page.name}: {' '.join(key)} has no {option}")


pages = sorted((ROOT / "configs" / "docs").glob("*.md"))
for page in pages:
    text = page.read_text(encoding="utf-8")
    check_paths(page, text)
    check_types(page, text)
    check_versions(page, text)
    check_options(page, text)
print("\n".join(problems) or f"{len(pages)} pages are as the source has it")
sys.exit(1 if problems or not pages else 0)
