#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# A calibration on all GPUs of some machines, under Slurm; a job that is preempted goes on where it stood:
#
#   sbatch configs/cluster/slurm.sh MODEL -o /shared/OUTPUT [options of oscar-calibrate]
#
#SBATCH --job-name=oscar
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --signal=TERM@180
set -uo pipefail
srun --kill-on-bad-exit=1 oscar-calibrate "$@"
code=$?
[ $code -ne 130 ] || scontrol requeue "$SLURM_JOB_ID" # stopped, and can go on
exit $code
