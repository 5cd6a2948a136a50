#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# pack_libraries.sh FOLDER PROGRAM [torch]: copies what PROGRAM loads into FOLDER, for another machine: everything but the C library
# itself, which must be the machine's own, and for one that has torch its libraries and those of the compiler.
set -eu
folder=$1 program=$2 others='^$'
[ "${3:-}" != torch ] || others='/\.deps/|/(libstdc\+\+|libgcc_s)\.so'
mkdir -p "$folder"
ldd "$program" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' | grep -vE "$others" |
  xargs -I{} cp -Lu {} "$folder/"
