#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that people keep asking, beside one that they leave alone.

Both train the same small network on two ranks for `--minutes`.  One is paused, resumed, saved, evaluated, told another
display_every, asked for its status and its stacks, and watched, at moments of chance; watchers are killed, and bytes
that are no message are sent to its socket.  At the end both must have the same weights, bit for bit, and the
one that was asked must have stayed flat: neither memory nor open files nor threads of a rank may have grown from the
second quarter of the time to the last, which is looked at from two minutes on.

Exit status: 0; 1 if something was wrong, which is printed.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOM_MIB = 8  # by which the memory of a rank may differ between two quarters: a file of output, a heap that is cut otherwise
FLAT_MINUTES = 2  # from which on there are enough looks at a rank to compare them
ASK_SECONDS = 120
CALIBRATION_STEPS = 300
PROBLEMS_SHOWN = 20
# What ddlctl says when the training is over, or comes to its end before it could obey.
END = re.compile(r"has ended|does not run any more|nobody (answers|listens)|"
                 r"is not possible while the training is in the state (evaluating|stopping|done)")


class Training:
    """Two ranks of the smallest network by ddlrun, on synthetic images."""

    def __init__(self, build, directory, steps, more=()):
        self.directory = directory
        self.results = directory / "run"
        directory.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "LC_ALL": "C", "TMPDIR": str(directory)}
        command = [build / "bin/ddlrun", "-n", "2", "--oversubscribe", "--launcher=local", build / "bin/ddltraind",
                   "--arch=resnet_tiny", "--classes=10", "--image_size=32", "--batch_size=8", "--iter_unit=batch",
                   "--lr_warmup_epochs=0", "--lr_init=0.001", "--threads=1", "--backend=cpu", "--mode=train_and_evaluate",
                   f"--num_iter={steps}", "--checkpoint_every=2000", "--keep_checkpoints=2", "--display_every=500",
                   f"--results_dir={self.results}", f"--export_dir={directory / 'export'}", *more]
        with open(directory / "out", "w", encoding="utf-8") as out, open(directory / "err", "w", encoding="utf-8") as err:
            self.process = subprocess.Popen([str(word) for word in command], cwd=directory, env=environment, stdout=out, stderr=err)

    def ranks(self):
        """Process ids of the ranks that live."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                is_ours = (entry / "comm").read_text().strip() == "ddltraind" and str(self.results) in (entry / "cmdline").read_text()
            except OSError:
                continue
            if is_ours:
                found.append(int(entry.name))
        return sorted(found)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()  # the ranks die with ddlrun
        self.process.wait()

    def weights(self):
        return (self.directory / "export" / "model.safetensors").read_bytes()


def sample(pid):
    """(resident MiB, open files, threads) of a process, or nothing where it has ended."""
    entry = pathlib.Path(f"/proc/{pid}")
    try:
        status = (entry / "status").read_text()
        files = len(list((entry / "fd").iterdir()))
    except OSError:
        return None
    resident = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    threads = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
    return (int(resident[1]) / 1024, files, int(threads[1])) if resident and threads else None


class People:
    """Who asks the training, one thing after the other."""

    def __init__(self, build, training, chance):
        self.ctl = build / "bin/ddlctl"
        self.training = training
        self.chance = chance
        self.watchers = []
        self.counts = collections.Counter()
        self.problems = []
        self.kinds = [self.pause, self.checkpoint, self.evaluate, self.set, self.status, self.stacks, self.watch, self.leave,
                      self.garbage]

    def state(self):
        """Of the training; nothing before it can be asked."""
        said = subprocess.run([self.ctl, "status", "--json", self.training.results], capture_output=True, text=True,
                              timeout=ASK_SECONDS)
        return json.loads(said.stdout)["state"] if said.returncode == 0 else ""

    def ask(self, *words):
        try:
            asked = subprocess.run([self.ctl, *words, self.training.results], capture_output=True, text=True, timeout=ASK_SECONDS)
        except subprocess.TimeoutExpired:
            self.problems.append(f"ddlctl {' '.join(words)}: no answer within {ASK_SECONDS} s")
            return ""
        # Who asks at the very end is told so.
        if asked.returncode and not END.search(asked.stderr) and self.training.ranks():
            self.problems.append(f"ddlctl {' '.join(words)}: {asked.returncode}: {asked.stderr.strip()}")
        return asked.stdout

    def pause(self):
        if self.ask("pause"):
            time.sleep(self.chance.uniform(0, 2))
            self.ask("resume")

    def checkpoint(self):
        self.ask("checkpoint")

    def evaluate(self):
        self.ask("evaluate")

    def set(self):
        self.ask("set", f"display_every={self.chance.randint(100, 1000)}")

    def status(self):
        text = self.ask("status", "--json")
        if text:
            json.loads(text)

    def stacks(self):
        self.ask("stacks")

    def watch(self):
        if len(self.watchers) < 4:
            self.watchers.append(subprocess.Popen([self.ctl, "watch", self.training.results], stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL))

    def leave(self):
        if self.watchers:
            watcher = self.watchers.pop(self.chance.randrange(len(self.watchers)))
            watcher.kill()
            watcher.wait()

    def garbage(self):
        """No message: chance bytes, half a line, or a line without end."""
        address = json.loads((self.training.results / ".ddltraind.control").read_text())
        text = self.chance.choice([self.chance.randbytes(200), b'{"version":1,"order":"sto', b"[" * 100_000, b"\n\n\n"])
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(20)
                client.connect(address["socket"])
                client.sendall(text)
        except OSError:
            pass  # refused, or the end: what counts is what becomes of the training

    def act(self):
        kind = self.chance.choice(self.kinds)
        self.counts[kind.__name__] += 1
        kind()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for watcher in self.watchers:
            watcher.kill()
            watcher.wait()


def growth(samples):
    """What grew from the second quarter to the last, in words."""
    found = []
    for pid, rows in samples.items():
        quarter = len(rows) // 4
        if quarter == 0:
            found.append(f"process {pid} was looked at {len(rows)} times only")
            continue
        early = [statistics.median(column) for column in zip(*rows[quarter:2 * quarter])]
        late = [statistics.median(column) for column in zip(*rows[-quarter:])]
        print(f"process {pid}: {early[0]:.1f} -> {late[0]:.1f} MiB, {early[1]:g} -> {late[1]:g} files, "
              f"{early[2]:g} -> {late[2]:g} threads, {len(rows)} looks")
        for name, room, was, now in zip(["MiB", "open files", "threads"], [ROOM_MIB, 1, 0], early, late):
            if now > was + room:
                found.append(f"process {pid} grew from {was:g} to {now:g} {name}")
    return found


def steps_for(build, work, minutes):
    """How many steps two such trainings side by side make in that time."""
    begun = time.monotonic()
    with (Training(build, work / "calibration0", CALIBRATION_STEPS) as first,
          Training(build, work / "calibration1", CALIBRATION_STEPS) as second):
        for training in (first, second):
            if training.process.wait() != 0:
                sys.exit(f"soak: no training is possible: {(training.directory / 'err').read_text()[-2000:]}")
    return max(CALIBRATION_STEPS, int(minutes * 60 / (time.monotonic() - begun) * CALIBRATION_STEPS))


def soak(build, work, minutes, chance):
    """What was wrong."""
    steps = steps_for(build, work, minutes)
    with (Training(build, work / "alone", steps) as alone, Training(build, work / "asked", steps) as asked,
          People(build, asked, chance) as people):
        while asked.process.poll() is None and people.state() != "training":
            time.sleep(0.1)
        samples = collections.defaultdict(list)
        while asked.process.poll() is None:
            people.act()
            for pid in asked.ranks():
                if row := sample(pid):
                    samples[pid].append(row)
        problems = people.problems + (growth(samples) if minutes >= FLAT_MINUTES else [])
        for training in (alone, asked):
            code = training.process.wait()
            if code != 0:
                problems.append(f"{training.directory.name}: exit code {code}: {(training.directory / 'err').read_text()[-2000:]}")
        if not problems and alone.weights() != asked.weights():
            problems.append("the weights differ from those of the training that was left alone")
    print(f"{steps} steps; asked: " + ", ".join(f"{count} {kind}" for kind, count in sorted(people.counts.items())))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent.parent / "build/release")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no training stays behind
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as directory:
        problems = soak(arguments.build.resolve(), pathlib.Path(directory), arguments.minutes, random.Random(arguments.seed))
    for problem in problems[:PROBLEMS_SHOWN]:
        print(f"soak: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
