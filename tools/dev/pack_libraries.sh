#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# pack_libraries.sh FOLDER PROGRAM [torch]: copies the libraries that PROGRAM loads into FOLDER, for
# another machine. Leaves out the C library, which must be the machine's own, and the libraries that
# are installed with PROGRAM; for a machine that has torch also torch's and the compiler's.
set -eu
folder=$1 program=$2 others='/\.\./lib/oscar/'
[ "${3:-}" != torch ] || others+='|/\.deps/|/(libstdc\+\+|libgcc_s)\.so'
mkdir -p "$folder"
# Our shared objects that it may load later are in one of its library folders.
for object in $(readelf -d "$program" | sed -n 's/.*RUNPATH.*\[\(.*\)\]/\1/p' | tr : '\n' | sed 's,$,/liboscar_*.so,'); do
  [ ! -e "$object" ] || cp -u "$object" "$folder/"
done
ldd "$program" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libpthread|libdl|librt|libresolv|libutil|ld-linux[^/]*)\.so' | grep -vE "$others" |
  xargs -I{} cp -Lu {} "$folder/"
