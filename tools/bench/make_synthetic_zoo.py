#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes a zoo of many versions for timing: every name is a copy of the one version in ZOO. With --distinct no two artifacts share
# a blob: a number in the low bits of each binary file and one in the report differ, and all digests are made again, so that
# `oscar-zoo verify` accepts them. Otherwise all share the blobs of the first. The zoo has no index.json until something is
# published to it.
#
#   tools/bench/make_synthetic_zoo.py ZOO OUT [--entries 10000] [--distinct]
import argparse
import hashlib
import json
import os
import shutil
import struct


def only(folder):
    """Returns the only folder or file in `folder`."""
    return os.path.join(folder, next(name for name in sorted(os.listdir(folder)) if name != "latest.json"))


def canonical(value):
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, separators=(",", ": ")) + "\n"


def offset_of(data, tensor):
    """Returns the offset of a tensor's first byte in a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    return 8 + length + header[tensor]["data_offsets"][0]


class Template:
    """One artifact, from which different copies are made."""

    def __init__(self, zoo, entry):
        self.zoo = zoo
        self.files = entry["files"]
        self.bytes = {name: self.read(digest["sha256"]) for name, digest in self.files.items()}
        rotations, moments = self.bytes["rotations.safetensors"], self.bytes["moments.safetensors"]
        self.threshold = offset_of(rotations, min(n for n in self.names(rotations) if n.endswith(".clip_threshold")))
        self.moment = offset_of(moments, min(n for n in self.names(moments) if n.endswith("sum") or n.endswith("key_sum") or "sum" in n))

    @staticmethod
    def names(data):
        return [name for name in json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]]) if name != "__metadata__"]

    def read(self, sha256):
        with open(os.path.join(self.zoo, "blobs/sha256", sha256), "rb") as file:
            return file.read()

    def copy(self, number):
        """Returns the files of a copy. Digests that a file of the original contains are replaced by those of the copy."""
        files = {name: bytearray(data) for name, data in self.bytes.items()}
        files["rotations.safetensors"][self.threshold:self.threshold + 2] = struct.pack("<H", number)
        files["moments.safetensors"][self.moment:self.moment + 2] = struct.pack("<H", number)
        for name in ("README.md", "report.html"):
            files[name] += b"<!-- %d -->\n" % number
        new = {}
        for name in ("rotations.safetensors", "moments.safetensors", "README.md", "report.html", "timings.json", "report.json", "manifest.json"):
            if name not in files:
                continue
            data = bytes(files[name])
            if name.endswith(".json"):
                for other, digest in new.items():
                    old = self.files[other]
                    data = data.replace(old["sha256"].encode(), digest["sha256"].encode())
                    if old["size"] != digest["size"] and name == "manifest.json":
                        json_digest = lambda d: b'"sha256": "%s",\n   "size": %d\n' % (d["sha256"].encode(), d["size"])
                        data = data.replace(json_digest({"sha256": digest["sha256"], "size": old["size"]}), json_digest(digest))
                if name == "timings.json":
                    data = data.rstrip() + b" " * (number % 97) + b"\n"
            files[name] = data
            new[name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        return files, new


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zoo")
    parser.add_argument("out")
    parser.add_argument("--entries", type=int, default=10000)
    parser.add_argument("--distinct", action="store_true")
    arguments = parser.parse_args()
    model = only(only(os.path.join(arguments.zoo, "entries")))
    with open(only(model), encoding="utf-8") as file:
        entry = json.load(file)
    with open(os.path.join(model, "latest.json"), encoding="utf-8") as file:
        latest = json.load(file)
    os.makedirs(arguments.out)
    os.makedirs(os.path.join(arguments.out, "staging"))
    shutil.copy(os.path.join(arguments.zoo, "zoo.json"), arguments.out)
    template = Template(arguments.zoo, entry)
    if not arguments.distinct:
        shutil.copytree(os.path.join(arguments.zoo, "blobs"), os.path.join(arguments.out, "blobs"))
    for number in range(arguments.entries):
        entry["name"] = latest["name"] = f"org{number % 100:02}/Model-{number:05}"
        entry["version"] = latest["version"] = "0.1.0"
        entry["publisher"]["published_at_unix"] = 1700000000 + 60 * number
        if arguments.distinct:
            files, entry["files"] = template.copy(number)
            entry["identity"] = latest["identity"] = entry["files"]["manifest.json"]["sha256"]
            for name, digest in entry["files"].items():
                write(os.path.join(arguments.out, "blobs/sha256", digest["sha256"]), files[name])
        else:
            latest["identity"] = entry["identity"]
        folder = os.path.join(arguments.out, "entries", entry["name"])
        write(os.path.join(folder, "0.1.0.json"), canonical(entry).encode())
        write(os.path.join(folder, "latest.json"), canonical(latest).encode())


if __name__ == "__main__":
    main()
