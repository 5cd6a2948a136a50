#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the build needs on Debian 12 or Ubuntu 24.04 (x86-64): packages by name, and LibTorch from the torch wheel
# into .deps/python. Does nothing where all of it is there. With a LibTorch of your own in CMAKE_PREFIX_PATH no wheel is
# installed. With --tests also what tests alone use and skip without: a browser that looks at the report page, and the
# Python packages that load what we export and sign.
# Trap: the wheel's check is the import itself, so a half-finished install is repaired, not trusted.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential cmake ninja-build ccache pkg-config git ca-certificates python3 python3-venv
  libeigen3-dev liblapacke-dev libopenblas-dev libhdf5-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev
  libfmt-dev libpcre2-dev libutf8proc-dev libssl-dev libcurl4-openssl-dev zlib1g-dev libzstd-dev
  liburing-dev libgtest-dev librapidcheck-dev)

say() { echo "setup: $*" >&2; }
die() { say "error: $*"; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    grep -qx "installed $package" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  local missing
  { command -v dpkg-query && command -v apt-get; } >/dev/null ||
    die "this script knows Debian 12 and Ubuntu 24.04 (apt) only; elsewhere install the equivalents of: ${packages[*]}"
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} -eq 0 ]; then
    say "Debian packages: all ${#packages[@]} installed"
    return
  fi
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    die "not root and no sudo; as root run: apt-get install ${missing[*]}"
  say "Debian packages: installing ${missing[*]}"
  as_root apt-get update -q || die "apt-get update failed; is the network up?"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" ||
    die "apt-get install failed (on Ubuntu the packages are in 'universe': add-apt-repository universe)"
}

# A LibTorch of the user's: a folder of CMAKE_PREFIX_PATH as tools/cmake/FindLibTorch.cmake understands it.
own_libtorch() {
  local prefix prefixes
  IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in ${prefixes[@]+"${prefixes[@]}"}; do
    for root in "$prefix" "$prefix/../.." "$prefix/torch"; do
      if [ -e "$root/include/ATen/ATen.h" ]; then
        (cd "$root" && pwd)
        return
      fi
    done
  done
}

wanted_torch() { sed -n 's/^torch==//p' tools/requirements-libtorch.txt; }

# Succeeds if the pinned torch can be imported, and compiled against.
wheel_works() {
  [ -x .deps/python/bin/python ] && compgen -G '.deps/python/lib/python3*/site-packages/nvidia/cu13/include/nv/target' >/dev/null &&
    .deps/python/bin/python -c "import sys, torch; sys.exit(torch.__version__.split('+')[0] != '$(wanted_torch)')" \
      >/dev/null 2>&1
}

install_libtorch() {
  local root attempt
  root=$(own_libtorch)
  if [ -n "$root" ]; then
    say "LibTorch: yours at $root"
    return
  fi
  # Importing torch takes seconds, so a stamp stands for it: the requirements that were installed and then imported.
  if cmp -s tools/requirements-libtorch.txt .deps/libtorch.installed && [ -x .deps/python/bin/python ]; then
    say "LibTorch: torch $(wanted_torch) in .deps/python"
    return
  fi
  if ! wheel_works; then
    [ "$(uname -m)" = x86_64 ] || die "the pinned torch wheel is for x86-64; set CMAKE_PREFIX_PATH to a LibTorch of yours"
    say "LibTorch: installing torch $(wanted_torch) and its libraries into .deps/python (about 2 GB to download)"
    [ -x .deps/python/bin/pip ] || /usr/bin/python3 -m venv .deps/python
    for attempt in 1 2 3; do
      .deps/python/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --retries 5 --timeout 120 \
        --only-binary :all: --no-deps -r tools/requirements-libtorch.txt && break
      [ "$attempt" -lt 3 ] || die "pip could not install torch $(wanted_torch); is the network up and is there 6 GB of disk?"
      say "LibTorch: pip failed, trying again ($attempt of 3)"
      sleep $((10 * attempt))
    done
    wheel_works || die "torch $(wanted_torch) is installed but does not import; see: .deps/python/bin/python -c 'import torch'"
  fi
  cp tools/requirements-libtorch.txt .deps/libtorch.installed
  say "LibTorch: torch $(wanted_torch) in .deps/python"
}

# Debian's own package; Ubuntu's is a stub for a snap, which does not run everywhere.
install_browser() {
  if command -v chromium >/dev/null; then
    say "tests: chromium is there"
  elif apt-cache policy chromium 2>/dev/null | grep -q 'Candidate: [0-9]' &&
    ! apt-cache policy chromium | grep -q 'Candidate:.*snap' &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium >&2; then
    say "tests: chromium installed"
  else
    say "tests: no chromium package here; the tests that look at the report page in a browser will be skipped"
  fi
}

# Into a folder of their own, which LibTorch's Python does not see.
install_consumers() {
  local wanted=tools/requirements-tests.txt stamp=.deps/consumers.installed
  if cmp -s "$wanted" "$stamp"; then
    say "tests: packages of consumers in .deps/consumers"
  elif [ -x .deps/python/bin/pip ] && rm -rf .deps/consumers &&
    .deps/python/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --retries 2 --timeout 60 \
      --only-binary :all: --no-deps --target .deps/consumers -r "$wanted"; then
    cp "$wanted" "$stamp"
    say "tests: packages of consumers installed into .deps/consumers"
  else
    rm -rf .deps/consumers
    say "tests: no packages of consumers here (onnx, gguf, model-signing); the tests that load our files with them will be skipped"
  fi
}

install_packages
install_libtorch
if [ "${1:-}" = --tests ]; then
  install_browser
  install_consumers
fi
