#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# A calibration by jobs that need no network between them and start when there is room: an array of SHARDS, each on one GPU,
# and a job behind it that merges them. On the login node:
#
#   SHARDS=8 OUTPUT=/shared/MODEL-oscar configs/cluster/slurm_array.sh MODEL [options of oscar-calibrate]
#
# All jobs need the same kind of GPU and as many cores. After a failure the same line goes on: what is done is not done again.
#
#SBATCH --job-name=oscar-shard
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --requeue
#SBATCH --signal=TERM@180
set -uo pipefail
if [ -z "${SLURM_JOB_ID:-}" ]; then
  array=$(sbatch --parsable --array="1-$SHARDS" --export=ALL "$0" "$@") || exit
  exec sbatch --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes --export=ALL "$0" "$@"
fi
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
  part=(--shard "$SLURM_ARRAY_TASK_ID/$SHARDS")
else
  part=(--merge "$OUTPUT".shard-*-of-"$SHARDS")
fi
srun oscar-calibrate "$@" -o "$OUTPUT" "${part[@]}"
code=$?
[ $code -ne 130 ] || scontrol requeue "$SLURM_JOB_ID" # stopped, and can go on
exit $code
