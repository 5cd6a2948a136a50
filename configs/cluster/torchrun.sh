#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# The same under torchrun; on every machine, with the name of the first:
#
#   NODES=2 FIRST=node1 RANKS_PER_NODE=8 configs/cluster/torchrun.sh MODEL -o OUTPUT [options of oscar-calibrate]
set -euo pipefail
exec torchrun --nnodes "${NODES:-1}" --nproc-per-node "${RANKS_PER_NODE:-gpu}" --rdzv-backend c10d \
  --rdzv-endpoint "${FIRST:-localhost}:${PORT:-29400}" --rdzv-id oscar --no-python oscar-calibrate "$@"
