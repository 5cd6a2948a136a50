#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to all tests run: installs what is missing, builds, runs ctest; arguments are passed to ctest. Tests need
# no network. Those that want the wide packs are skipped, and counted, where OSCAR_TEST_PACKS is not set.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh --tests
tools/build.sh

# The summary is held back for a moment, so that it stays last while the count of skipped tests is known only at the end.
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
status=0
# One program more than cores, as some wait for each other or for a limit of time; threads that spin while they wait take
# the others' time.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-PASSIVE}
ctest --preset dev -j "$(($(nproc) < 8 ? $(nproc) + 1 : 9))" "$@" |
  sed -u -e '/^[0-9]\+% tests passed/,$ {' -e "w $summary" -e 'd' -e '}' || status=$?
if [ -n "${OSCAR_TEST_PACKS:-}" ]; then
  echo "OSCAR_TEST_PACKS=$OSCAR_TEST_PACKS: the tests of the wide packs ran"
else
  skipped=$(grep -c 'OSCAR_TEST_PACKS is not set' build/dev/Testing/Temporary/LastTest.log || true)
  echo "OSCAR_TEST_PACKS is not set: $skipped tests of the wide packs were skipped"
fi
cat "$summary"
exit "$status"
