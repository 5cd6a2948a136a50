#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# replay_kept.sh PROGRAM: runs every input of kept.tar.gz, which earlier campaigns kept for their coverage.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xzf "$(dirname "$0")/kept.tar.gz" -C "$folder"
"$1" -stored="$folder"
