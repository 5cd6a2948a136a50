#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# sbom.py PROGRAM...: prints what the programs (and shared objects, lib/oscar/*.so) load and were built with, as CycloneDX 1.5
# JSON: every shared library that ldd finds, with its SHA-256 and the Debian package or Python wheel that it comes from, and the
# header-only packages of the build. Needs ldd and dpkg.
import hashlib
import json
import os
import re
import subprocess
import sys

HEADER_ONLY = ["libeigen3-dev", "nlohmann-json3-dev", "libcli11-dev", "libfmt-dev"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def packaged(name, version):
    return {"type": "library", "name": name, "version": version, "purl": f"pkg:deb/debian/{name}@{version}"}


def wheel_of(path):
    """Returns the name and version of the wheel whose folder of site-packages holds the file."""
    match = re.match(r"(.*/site-packages)/(\w+)/", path)
    if not match:
        return None
    for entry in sorted(os.listdir(match[1])):
        record = os.path.join(match[1], entry, "RECORD")
        if entry.endswith(".dist-info") and os.path.exists(record):
            with open(record, encoding="utf-8") as file:
                if os.path.relpath(path, match[1]) + "," in file.read():
                    return entry[:-len(".dist-info")].rsplit("-", 1)
    return None


def component(path):
    real = os.path.realpath(path)
    with open(real, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    found = {"type": "library", "name": os.path.basename(real), "version": "unknown"}
    wheel = wheel_of(os.path.abspath(path))
    owner = "" if wheel else output("dpkg", "-S", real).split(":")[0] or output("dpkg", "-S", real.replace("/usr/lib", "/lib", 1)).split(":")[0]
    if wheel:
        found.update(version=wheel[1], purl=f"pkg:pypi/{wheel[0]}@{wheel[1]}")
    elif owner:
        found = packaged(owner, output("dpkg-query", "-W", "-f", "${Version}", owner))
    found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    found["properties"] = [{"name": "file", "value": os.path.basename(path)}]
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: sbom.py PROGRAM...")
    paths = set()
    for program in sys.argv[1:]:
        linked = output("ldd", program)
        if not linked:
            sys.exit(f"sbom.py: ldd says nothing of {program}; is it a program?")
        missing = re.findall(r"(\S+) => not found", linked)
        if missing:
            sys.exit(f"sbom.py: {program} does not find {', '.join(missing)}")
        paths.update(re.findall(r"(/\S+) \(0x", linked))
    components = [component(path) for path in sorted(paths)]
    for name in HEADER_ONLY:
        version = output("dpkg-query", "-W", "-f", "${Version}", name)
        if version:
            components.append(packaged(name, version))
    print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
                      "metadata": {"component": {"type": "application", "name": "oscar"}},
                      "components": components}, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
