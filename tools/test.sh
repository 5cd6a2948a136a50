#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests from a fresh clone: installs what is missing, builds, and runs ctest, to which arguments are passed. Tests need
# no network. Counts skipped tests by reason, and fails if one was skipped for lack of a package that a registry has.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh --tests
tools/build.sh

# A published model, for the tests that run one.
model=$PWD/.deps/real/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -z "${OSCAR_TEST_REAL_MODEL:-}" ] && [ -f "$model" ]; then export OSCAR_TEST_REAL_MODEL=$model; fi

# Holds back the summary so that it is printed last, after the count of skipped tests.
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
status=0
# Runs one program more than there are cores, because some wait for each other or for a time limit. Threads that spin while
# they wait would take time from the others.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-PASSIVE}
ctest --preset dev -j "$(($(nproc) < 8 ? $(nproc) + 1 : 9))" "$@" |
  sed -u -e '/^[0-9]\+% tests passed/,$ {' -e "w $summary" -e 'd' -e '}' || status=$?
tools/dev/count_skipped build/dev/Testing/Temporary/LastTest.log .deps/unavailable || status=1
cat "$summary"
exit "$status"
