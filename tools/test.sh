#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to all tests run: installs what is missing, builds, runs ctest; arguments are passed to ctest. Tests need
# no network. Skipped tests are counted by reason, and this fails where one was skipped for want of a package that a registry has.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh --tests
tools/build.sh

# A published model, for the tests that run one.
model=$PWD/.deps/real/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -z "${OSCAR_TEST_REAL_MODEL:-}" ] && [ -f "$model" ]; then export OSCAR_TEST_REAL_MODEL=$model; fi

# The summary is held back for a moment, so that it stays last while the count of skipped tests is known only at the end.
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
status=0
# One program more than cores, as some wait for each other or for a limit of time; threads that spin while they wait take
# the others' time.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-PASSIVE}
ctest --preset dev -j "$(($(nproc) < 8 ? $(nproc) + 1 : 9))" "$@" |
  sed -u -e '/^[0-9]\+% tests passed/,$ {' -e "w $summary" -e 'd' -e '}' || status=$?
tools/dev/count_skipped build/dev/Testing/Temporary/LastTest.log .deps/unavailable || status=1
cat "$summary"
exit "$status"
