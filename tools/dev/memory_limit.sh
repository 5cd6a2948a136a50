#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# memory_limit.sh [-f FACTOR] OSCAR-CALIBRATE MODEL... [-- OPTION...]: checks the memory plan.
# Calibrates each model in a memory cgroup (version 1 or 2, without swap) of FACTOR (1.2) times the
# peak host memory that --dry-run names. A run must finish, or refuse with exit code 4 before its
# first layer; anything else is a failure, above all the kernel's killer. Needs root.
set -euo pipefail
factor=1.2
[ "$1" = -f ] && factor=$2 && shift 2
program=$1
shift
if [ -w /sys/fs/cgroup/memory/cgroup.procs ]; then
  group=/sys/fs/cgroup/memory/oscar-$$ limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
elif [ -w /sys/fs/cgroup/cgroup.procs ]; then
  group=/sys/fs/cgroup/oscar-$$ limit=memory.max peak=memory.peak
else
  echo "memory_limit.sh: no memory cgroup can be made here" >&2
  exit 4
fi
models=() options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do models+=("$1") && shift; done
[ $# -gt 0 ] && options=("${@:2}")
scratch=$(mktemp -d)
trap 'rmdir "$group" 2>/dev/null; rm -rf "$scratch"' EXIT
failed=0
for model in "${models[@]}"; do
  plan=$("$program" "$model" "${options[@]}" --dry-run | awk '/^peak host memory/ {u = $5 == "GB" ? 1e9 : $5 == "MB" ? 1e6 : 1e3; printf "%d", $4 * u}')
  bytes=$(awk -v p="$plan" -v f="$factor" 'BEGIN {printf "%d", p * f}')
  mkdir "$group"
  echo "$bytes" >"$group/$limit"
  { [ ! -e "$group/memory.memsw.limit_in_bytes" ] || echo "$bytes" >"$group/memory.memsw.limit_in_bytes"; } 2>/dev/null || true
  [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
  status=0
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    exec "$program" "$model" "${options[@]}" -o "$scratch/out"
  ) >"$scratch/log" 2>&1 || status=$?
  used=$(cat "$group/$peak" 2>/dev/null || echo 0)
  verdict=finished
  if [ "$status" = 4 ] && ! grep -q '^layer ' "$scratch/log"; then
    verdict=refused
  elif [ "$status" != 0 ]; then
    verdict="FAILED (exit $status)" failed=1
    tail -3 "$scratch/log"
  fi
  awk -v m="$(basename "$model")" -v p="$plan" -v b="$bytes" -v u="$used" -v v="$verdict" \
    'BEGIN {printf "%-24s planned %7.1f MB, limit %7.1f MB, used %7.1f MB: %s\n", m, p / 1e6, b / 1e6, u / 1e6, v}'
  rmdir "$group"
  rm -rf "$scratch/out"*
done
exit $failed
