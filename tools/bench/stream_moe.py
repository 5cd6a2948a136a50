#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks whether a mixture of experts that is larger than the allowed GPU memory is calibrated at the speed of its disk. Makes
# such a model, measures the disk with dd (O_DIRECT), and calibrates the model within 12 GB from a cold page cache. Kills a second
# run with SIGKILL in the middle, resumes it and compares the artifacts. Exits with 1 unless the run reaches 80 % of dd's speed,
# stays within 12 GB, gives the same bytes, and repeats at most LOST layers.
# Traps: GPU memory is that of the whole GPU minus what was in use before, so nothing else may run on it. dd may vary on a shared
# disk, so it runs before, between and after the calibrations.
#
#   tools/bench/stream_moe.py BUILD MODEL [--gigabytes 60] [--tokens 4096] [--read direct] [-- options of oscar-calibrate]
import argparse
import filecmp
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RATE_BAR, MEMORY_BAR = 0.8, 12e9
SPARE = 3e9  # bytes left free for artifacts and jobs
LOST = 3     # layers: one that is being read, and two that are being fitted


def say(text):
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {text}", flush=True)


def make_model(arguments):
    if os.path.exists(os.path.join(arguments.model, "config.json")):
        return
    os.makedirs(arguments.model, exist_ok=True)
    system = subprocess.run(["stat", "-f", "-c", "%T", arguments.model], check=True, capture_output=True, text=True).stdout.strip()
    if system in ("tmpfs", "ramfs"):
        sys.exit(f"{arguments.model}: is in memory ({system}); give a place on a disk")
    free = shutil.disk_usage(arguments.model).free
    gigabytes = min(arguments.gigabytes, (free - SPARE) / 1e9)
    if gigabytes < arguments.gigabytes:
        say(f"the disk has {free / 1e9:.1f} GB free: {gigabytes:.1f} GB instead of {arguments.gigabytes:.1f}")
    command = [os.path.join(HERE, "make_synthetic_model.py"), arguments.model, "--family", "qwen3_moe", "--gigabytes",
               str(gigabytes), "--shards", "12"]
    say(subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True).stdout.strip())


def shards_of(model):
    return sorted(os.path.join(model, name) for name in os.listdir(model) if name.endswith(".safetensors"))


def forget(model):
    """Drops the model's files from the page cache."""
    for path in shards_of(model):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)  # pages that are not on the disk yet would stay
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def dd_rate(path):
    """Returns the bytes per second that dd reads."""
    begin = time.monotonic()
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "iflag=direct", "bs=16M", "status=none"], check=True)
    return os.path.getsize(path) / (time.monotonic() - begin)


class GpuMemory:
    """Measures the peak of bytes in use on the first GPU, minus those in use at the start."""

    def __init__(self):
        self.first, self.most = None, 0
        self.process = None
        if shutil.which("nvidia-smi") is None:
            return
        command = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "50"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.first = int(self.process.stdout.readline()) << 20
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        for line in self.process.stdout:
            self.most = max(self.most, (int(line) << 20) - self.first)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        return self.most


class Run:
    """Runs oscar-calibrate and reads the events of its log as they come."""

    def __init__(self, arguments, output, kill_at=None):
        command = [os.path.join(arguments.build, "tools/oscar-calibrate"), arguments.model, "-o", output, "--log-format", "json",
                   "--max-vram", str(MEMORY_BAR / 1e9), "--tokens", str(arguments.tokens), "--max-sequence", "1024", "--read",
                   arguments.read, *arguments.options]
        forget(arguments.model)
        self.layers, self.done, self.killed_after = [], {}, None
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.disk_bytes = 0
        for line in self.process.stderr:
            if not line.startswith("{"):
                print(line, end="", file=sys.stderr)
                continue
            event = json.loads(line)
            if event["event"] == "step_done":
                self.layers.append(event["fields"])
                self.read_io()
                if kill_at is not None and len(self.layers) == kill_at:
                    time.sleep(0.3 * self.layers[-1]["seconds"])  # somewhere inside the next layer
                    self.process.send_signal(signal.SIGKILL)
            elif event["event"] == "done":
                self.done = event["fields"]
            elif event["level"] != "info":
                print(line, end="", file=sys.stderr)
        code = self.process.wait()
        if code != (0 if kill_at is None else -signal.SIGKILL):
            sys.exit(f"{' '.join(command)}: exit code {code}")

    def read_io(self):
        """Records the bytes that the process has read from the disk so far, including those for digests."""
        try:
            with open(f"/proc/{self.process.pid}/io", encoding="ascii") as file:
                self.disk_bytes = int(dict(line.split(": ") for line in file.read().splitlines())["read_bytes"])
        except OSError:
            pass

    def bytes(self):
        return sum(layer["bytes_read"] for layer in self.layers)

    def rate(self):
        return self.bytes() / self.done["loop_seconds"]


def same_artifacts(one, other):
    names = sorted(os.listdir(one))
    if names != sorted(os.listdir(other)):
        return False
    return all(filecmp.cmp(os.path.join(one, name), os.path.join(other, name), shallow=False)
               for name in names if name != "timings.json")


def parse(arguments):
    options = []
    if "--" in arguments:
        options = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    parser = argparse.ArgumentParser(description="Streams a synthetic mixture of experts through oscar-calibrate.")
    parser.add_argument("build", help="build directory")
    parser.add_argument("model", help="where the model is, or will be")
    parser.add_argument("--gigabytes", type=float, default=60)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--read", choices=["auto", "direct", "cached"], default="direct")
    parsed = parser.parse_args(arguments)
    parsed.options = options
    return parsed


def main():
    arguments = parse(sys.argv[1:])
    make_model(arguments)
    shards = shards_of(arguments.model)
    say(f"{len(shards)} shards, {sum(map(os.path.getsize, shards)) / 1e9:.2f} GB")
    scratch = arguments.model.rstrip("/") + "-stream"
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    forget(arguments.model)
    disk = [dd_rate(shards[0])]
    say(f"dd: {disk[-1] / 1e9:.2f} GB/s")

    memory = GpuMemory()
    whole = Run(arguments, os.path.join(scratch, "whole"))
    in_use = memory.stop()
    say(f"whole run: {whole.bytes() / 1e9:.2f} GB of weights in {whole.done['loop_seconds']:.2f} s, {whole.rate() / 1e9:.2f} GB/s; "
        f"{whole.disk_bytes / 1e9:.2f} GB from the disk until its last layer; {whole.done['total_seconds']:.1f} s in all")
    say(f"its memory: tensors {whole.done['peak_memory_bytes'] / 1e6:.0f} MB, the GPU {in_use / 1e6:.0f} MB (context, cuBLAS, cached)")
    say("its phases: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in whole.done["phases"].items() if seconds >= 0.1))
    forget(arguments.model)
    disk.append(dd_rate(shards[len(shards) // 2]))
    say(f"dd: {disk[-1] / 1e9:.2f} GB/s")

    killed = Run(arguments, os.path.join(scratch, "killed"), kill_at=max(1, len(whole.layers) // 2))
    say(f"killed after layer {len(killed.layers)} of {len(whole.layers)} was reported")
    resumed = Run(arguments, os.path.join(scratch, "killed"))
    at = resumed.done["resumed_at_layer"]
    say(f"resumed with {at} layers done: {resumed.bytes() / 1e9:.2f} GB in {resumed.done['loop_seconds']:.2f} s, "
        f"{resumed.rate() / 1e9:.2f} GB/s")
    same = same_artifacts(os.path.join(scratch, "whole"), os.path.join(scratch, "killed"))
    forget(arguments.model)
    disk.append(dd_rate(shards[-1]))
    say(f"dd: {disk[-1] / 1e9:.2f} GB/s")
    shutil.rmtree(scratch)

    share = whole.rate() / statistics.median(disk)
    bars = {f"{100 * share:.0f} % of dd's median {statistics.median(disk) / 1e9:.2f} GB/s (bar {100 * RATE_BAR:.0f} %)": share >= RATE_BAR,
            f"{in_use / 1e9:.2f} GB of GPU memory (bar {MEMORY_BAR / 1e9:.0f} GB)": in_use <= MEMORY_BAR,
            f"resumed {len(killed.layers) - at} layers before the last one reported (at most {LOST})": len(killed.layers) - at <= LOST,
            "the resumed artifact is byte for byte that of the whole run": same}
    for what, met in bars.items():
        print(("met:    " if met else "MISSED: ") + what)
    sys.exit(0 if all(bars.values()) else 1)


BEGAN = time.monotonic()
if __name__ == "__main__":
    main()
