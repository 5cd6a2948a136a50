#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Every harness must find the bug that is planted under it (planted/) by mutation: its seeds do not show the bug, and
# 20000 mutated inputs do. Names the harnesses for which this does not hold, and fails.
set -u
program=$1
missed=0
for harness in $("$program" -names); do
  if ! "$program" -runs=0 -stored= "$harness" >/dev/null 2>&1; then
    echo "check_planted: $harness fails on its seeds, which proves nothing about mutation"
    missed=1
  fi
  if "$program" -runs=20000 -stored= "$harness" >/dev/null 2>&1; then
    echo "check_planted: $harness did not find its bug"
    missed=1
  fi
done
exit $missed
