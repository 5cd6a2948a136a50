#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# package.sh [deb] [archive] [wheel]: writes the packages that users install into build/packages, all three by default, and prints
# the paths: a .deb for Debian 12 and a relocatable .tar.xz, both with the CPU libraries of LibTorch, and the wheel
# oscar-kv-tools, which uses GPUs and LibTorch from PyPI's torch. tools/dev/try_package.sh tries them. Builds in build/package
# (preset package).
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/build/packages
staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT

build() { OSCAR_PRESET=package OSCAR_TORCH=$1 tools/build.sh >&2; }

# Installs into a folder, with all libraries that the programs load except the C library and LibTorch.
install_with_libraries() {
  local prefix=$1 program
  cmake --install build/package --strip --prefix "$prefix" >&2
  for program in "$prefix"/bin/*; do tools/dev/pack_libraries.sh "$prefix/lib/oscar" "$program" torch; done
}

version() { build/package/tools/oscar --version | sed -n '1s/.* //p'; }

make_deb() {
  build bundled
  cpack --config build/package/CPackConfig.cmake -G DEB -B "$staging/deb" >&2
  cp "$staging"/deb/*.deb "$out"
  ls "$out"/*.deb
}

make_archive() {
  local name
  build bundled
  name=oscar-kv-tools-$(version)-linux-$(uname -m)
  install_with_libraries "$staging/$name"
  tar -C "$staging" --owner=0 --group=0 --sort=name -c "$name" | xz -T0 >"$out/$name.tar.xz"
  echo "$out/$name.tar.xz"
}

make_wheel() {
  local source=$staging/wheel
  build wheel
  cp -r tools/wheel "$source"
  install_with_libraries "$source/oscar_kv_tools"
  mv "$source/oscar_kv_tools/share" "$source/share"
  cp LICENSE "$source"
  version >"$source/version"
  tools/wheel.sh "$out" "$source"
}

mkdir -p "$out"
[ $# -gt 0 ] || set -- deb archive wheel
for kind in "$@"; do
  case $kind in
    deb | archive | wheel) "make_$kind" ;;
    *) echo "package: error: '$kind' is unknown; expected deb, archive or wheel" >&2; exit 2 ;;
  esac
done
