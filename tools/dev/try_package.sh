#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# try_package.sh FILE...: tries packages made by tools/package.sh (.deb, .tar.xz, .whl), each in a fresh Debian 12 that holds
# nothing of this clone except a tiny model: installs it, calibrates, validates, exports and publishes. A .deb is installed by the
# steps of configs/docker/Dockerfile. Needs root and debootstrap; OSCAR_DEBIAN keeps the base system (/tmp/oscar-debian-12) for
# the next time.
set -euo pipefail
cd "$(dirname "$0")/../.."

base=${OSCAR_DEBIAN:-/tmp/oscar-debian-12}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
[ -d "$base" ] || debootstrap --variant=minbase bookworm "$base"

# Runs lines of sh in that system; mounts are removed when they end.
inside() {
  unshare --mount bash -ec 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"
    exec chroot "$0" env -i HOME=/root PATH="$1/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" sh -exc "$2"' "$root" "$path" "$1"
}

for file in "$@"; do
  echo "== $file"
  rm -rf "$root"
  cp -a "$base" "$root"
  cp /etc/resolv.conf "$root/etc/"
  mkdir "$root/work"
  cp -r tests/data/tiny-qwen3 "$root/work/model"
  path=
  case $file in
    *.deb)
      cp "$file" "$root/tmp/"
      inside "$(sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' configs/docker/Dockerfile | sed -n 's/^RUN //p')"
      ;;
    *.tar.xz)
      tar -C "$root/opt" -xf "$file"
      mv "$root"/opt/oscar-kv-tools-* "$root/opt/moved"
      path=/opt/moved/bin:
      ;;
    *.whl)
      cp "$file" /etc/ssl/certs/ca-certificates.crt "$root/tmp/"
      inside 'apt-get update -q; apt-get install -q -y --no-install-recommends python3-venv; python3 -m venv /opt/venv
        /opt/venv/bin/pip install --quiet --no-cache-dir --cert /tmp/ca-certificates.crt /tmp/*.whl'
      path=/opt/venv/bin:
      ;;
    *) echo "try_package: error: $file: expected .deb, .tar.xz or .whl" >&2; exit 2 ;;
  esac
  # Runs the commands that the calibration prints at its end too, except a validation with defaults.
  inside 'cd /work; oscar --version; oscar doctor model
    oscar calibrate model --device cpu -o made | tee said
    oscar validate made --model model --device cpu --sequences 2 --length 2048 --needle-tasks passages --gate "kl<=0.1,top1_agreement>=0.7"
    sed -n "/^next:/,\$ s/^  //p" said | grep -v "^oscar-validate" | sh -ex
    oscar zoo verify local/made --zoo zoo --model model --device cpu'
done
