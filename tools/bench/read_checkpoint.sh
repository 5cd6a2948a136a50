#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Reads a checkpoint cold, three times by turns with dd (O_DIRECT) and with oscar's own path, and prints the median of
# oscar's GB/s as a share of dd's; then warm. Exits 1 below 80 %. Trap: the page cache is emptied of these files only, and
# only of pages that are on disk already.
#
#   tools/bench/read_checkpoint.sh BUILD MODEL
set -euo pipefail
program=$1/tools/oscar-bench-read model=$2

forget() {
  sync "$model"/*.safetensors
  for file in "$model"/*.safetensors; do dd if="$file" iflag=nocache count=0 status=none; done
}

dd_direct() { # GB/s over all files
  local begin bytes=0 file
  begin=$(date +%s.%N)
  for file in "$model"/*.safetensors; do
    dd if="$file" of=/dev/null iflag=direct bs=16M status=none
    bytes=$((bytes + $(stat -Lc %s "$file")))
  done
  awk -v b="$bytes" -v s="$begin" -v e="$(date +%s.%N)" 'BEGIN { printf "%.3f\n", b / (e - s) / 1e9 }'
}

median() { sort -n | sed -n 2p; }

dd=() ours=()
for turn in 1 2 3; do
  forget
  dd+=("$(dd_direct)")
  forget
  line=$("$program" "$model" direct)
  ours+=("${line%% *}")
  echo "turn $turn: dd ${dd[-1]} GB/s, oscar $line"
done
"$program" "$model" cached >/dev/null # fills the cache
echo "warm: $("$program" "$model" auto)"
a=$(printf '%s\n' "${ours[@]}" | median) b=$(printf '%s\n' "${dd[@]}" | median)
awk -v a="$a" -v b="$b" 'BEGIN { printf "cold: oscar %.2f GB/s, dd %.2f GB/s, %.0f %%\n", a, b, 100 * a / b; exit a < 0.8 * b }'
