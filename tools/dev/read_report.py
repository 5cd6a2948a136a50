#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Reads the measurements of oscar-validate with only Python's standard library. As a program it prints a row per arm; as a module
# it returns the arms as dicts with short names instead of JSON paths. The numbers are those of report.json
# (export/report/schema.md).
#
#   tools/dev/read_report.py REPORT [COLUMN ...]       REPORT: a report.json, or a directory that holds one
#   >>> from read_report import read_arms; {arm["name"]: arm["kl"] for arm in read_arms("report.json")}
import json
import pathlib
import sys

COLUMNS = {  # name: its path in an arm
    "bits": ("bits_per_element", "paper"),
    "stored": ("bits_per_element", "actual"),
    "kl": ("local", "kl", "mean"),
    "output_error": ("local", "output_rel_error"),
    "kl_end_to_end": ("end_to_end", "kl", "mean"),
    "perplexity": ("text", "perplexity"),
    "ppl_ratio": ("text", "ppl_ratio"),
    "token_kl": ("text", "token_kl", "mean"),
    "same_token": ("text", "top1_agreement"),
    "recall": ("needle", "accuracy"),
    "tool_calls": ("tool_call", "accuracy"),
    "argument_kl": ("tool_call", "token_kl", "mean"),
    "departs_after": ("reasoning", "tokens_until"),
    "continuation_kl": ("reasoning", "token_kl", "mean"),
}


def read_arms(path):
    """Returns the arms of a validated report in its order, each a dict of `name` and COLUMNS; None if not measured."""
    path = pathlib.Path(path)
    report = json.loads((path / "report.json" if path.is_dir() else path).read_text(encoding="utf-8"))
    schema = report.get("$schema", {})
    if schema.get("name") != "oscar-report" or "validation" not in report:
        raise ValueError(f"{path}: no report of oscar-validate")
    return [{"name": arm["name"], **{name: find(arm, place) for name, place in COLUMNS.items()}} for arm in report["validation"]["arms"]]


def find(arm, place):
    for key in place:
        arm = arm.get(key) if isinstance(arm, dict) else None
    return arm


def table(arms, columns):
    cells = [["configuration", *columns]] + [[arm["name"], *("-" if arm[c] is None else f"{arm[c]:.4g}" for c in columns)] for arm in arms]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [[cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))] for row in cells]
    return "\n".join("  ".join(line) for line in lines)


if __name__ == "__main__":
    if len(sys.argv) < 2 or set(sys.argv[2:]) - COLUMNS.keys():
        sys.exit(f"usage: {sys.argv[0]} REPORT [COLUMN ...], columns: {', '.join(COLUMNS)}")
    try:
        print(table(read_arms(sys.argv[1]), sys.argv[2:] or list(COLUMNS)))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
