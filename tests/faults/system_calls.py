#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training at each system call of its files, lets each of them fail, and goes on from what is left.

strace does both: it counts the calls of every thread, and in the N-th of a kind it sends SIGKILL or returns an error.
Which N touch the training's own files (run directory or data) is read off a run without faults.  After each fault the
same command again, without one, must end with the weights of a training that nothing disturbed, bit for bit, and leave
the same files.  A fault that ends the training must be named: the error's text and a path.
"""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

WRITING = "openat mkdir write writev pwrite64 pwritev fsync fdatasync rename renameat renameat2 close unlink unlinkat rmdir ftruncate".split()
READING = "openat read pread64 getdents64 close fstat newfstatat mmap".split()
ERRORS = {
    "openat": ["EIO", "EACCES", "ENOSPC", "EMFILE"], "mkdir": ["ENOSPC", "EDQUOT", "EACCES"], "write": ["EIO", "ENOSPC", "EDQUOT"],
    "fsync": ["EIO", "ENOSPC", "EDQUOT"], "rename": ["EIO", "ENOSPC", "EDQUOT"], "close": ["EIO", "EDQUOT"], "unlink": ["EIO", "EBUSY"],
    "ftruncate": ["EIO", "ENOSPC"], "read": ["EIO", "ESTALE"], "getdents64": ["EIO", "ESTALE"], "fstat": ["EIO", "ESTALE"],
    "mmap": ["ENOMEM"]}
SAME = {"writev": "write", "pwrite64": "write", "pwritev": "write", "fdatasync": "fsync", "renameat": "rename", "renameat2": "rename", "unlinkat": "unlink",
        "rmdir": "unlink", "pread64": "read", "newfstatat": "fstat"}
SECONDS = 60  # no run may last longer: nothing here takes more than two

Fault = collections.namedtuple("Fault", "start call number what")  # start: "new", or "resumed" from a checkpoint in its midst
Outcome = collections.namedtuple("Outcome", "hit end problem")


class Campaign:
    def __init__(self, build, work):
        self.work = work
        self.data = work / "data"
        self.command = [build / "bin/ddltraind", "--arch=resnet_tiny", f"--data_dir={self.data}", "--classes=10", "--image_size=32",
                        "--batch_size=8", "--iter_unit=batch", "--lr_warmup_epochs=0", "--threads=1", "--data_threads=1",
                        "--mode=train", "--num_iter=6", "--checkpoint_every=2", "--keep_checkpoints=2", "--hang_floor_seconds=0"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(work), "LC_ALL": "C", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        subprocess.run([build / "bin/ddldata", "synth", "--classes", "10", "--images", "60", "--validation_images", "8",
                        "--size", "40", self.data], check=True, stdout=subprocess.DEVNULL)
        self.half = work / "half"
        self.train(self.half, more=["--run_iter=4"]).check_returncode()
        self.whole = work / "whole"
        self.train(self.whole).check_returncode()

    def train(self, run, before=(), more=()):
        return subprocess.run([*before, *self.command, f"--results_dir={run}", f"--export_dir={run}/export", *more], cwd=self.work,
                              env=self.environment, capture_output=True, text=True, errors="replace", timeout=SECONDS)

    def begin(self, run, start):
        shutil.rmtree(run, ignore_errors=True)
        if start == "resumed":
            shutil.copytree(self.half, run)

    def points(self, start, calls):
        """The calls that touch the training's files: (call, number of its kind in its thread)."""
        run, log = self.work / "traced", self.work / "trace"
        self.begin(run, start)
        self.train(run, ["strace", "-f", "-y", "-o", log, "-e", "trace=" + ",".join(calls), "-e", "signal=none"]).check_returncode()
        counts, points = collections.Counter(), set()
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"(\d+) +(\w+)\(", line)
            if not match:
                continue
            counts[match.groups()] += 1
            if str(run) in line or str(self.data) in line:
                points.add((match[2], counts[match.groups()]))
        return sorted(points)

    def files(self, run):
        """All but checkpoints of earlier steps: one that could not be read for a moment is set aside, and outlives its turn,
        and one that was written for an error takes the place of another.  And but training.json and the address for ddlctl,
        without which a training goes on where they cannot be written, and what a killed one had begun of them: it lies there
        until the next one replaces it."""
        names = (str(path.relative_to(run)) for path in run.rglob("*"))
        replaced = r"(training\.json|\.ddltraind\.control)"
        passing = rf"checkpoints/step-000000000[1-5](\.unusable)?(/|$)|{replaced}$|\.{replaced}\.tmp$"
        return sorted(name for name in names if not re.match(passing, name))

    def wrong(self, run):
        """What differs from the undisturbed training, or nothing."""
        if self.files(run) != self.files(self.whole):
            return "other files: " + " ".join(sorted(set(self.files(run)) ^ set(self.files(self.whole))))
        for path in self.whole.rglob("*.safetensors"):
            same = run / path.relative_to(self.whole)
            if "step-0000000004" in same.parts and not same.parent.exists():
                continue
            if path.read_bytes() != same.read_bytes():
                return f"{path.relative_to(self.whole)} is another"
        return None

    def try_fault(self, number, fault):
        run, log = self.work / f"run{number}", self.work / f"log{number}"
        self.begin(run, fault.start)
        action = "signal=KILL" if fault.what == "KILL" else "error=" + fault.what
        try:
            ended = self.train(run, ["strace", "-f", "-y", "-o", log, "-e", f"trace={fault.call}", "-e", "signal=none",
                                     "-e", f"inject={fault.call}:{action}:when={fault.number}"])
            killed = fault.what == "KILL" and ended.returncode in (-9, 137)
            calls = log.read_text(errors="replace")
            hit = killed or "(INJECTED)" in calls
            problem = self.judge(fault, ended, run, calls) if hit else None
            end = "killed" if killed else "went on" if ended.returncode == 0 else "ended"
            if not problem:
                again = self.train(run)
                problem = self.wrong(run) if again.returncode == 0 else f"again: exit code {again.returncode}: {again.stderr[-600:]}"
        except subprocess.TimeoutExpired:
            # Linux never refuses a write to an eventfd that wakes a thread: nobody can be ready for it.
            if re.search(r" write\(\d+<anon_inode:\[eventfd\]>.*\(INJECTED\)", log.read_text(errors="replace")):
                return Outcome(False, "hung", None)
            return Outcome(True, "hung", f"longer than {SECONDS} s")
        if not problem:
            shutil.rmtree(run)
            log.unlink()
        return Outcome(hit, end, problem)

    def judge(self, fault, ended, run, calls):
        if fault.what == "KILL":
            return None
        if ended.returncode < 0 or ended.returncode >= 128:
            return f"died of the error: {ended.returncode}: {ended.stderr[-600:]}"
        if ended.returncode == 0:
            return None if (run / "checkpoints/step-0000000006").is_dir() else "exit code 0 without its last checkpoint"
        # A number is one of every thread: that of a call of the thread that writes checkpoints may be one of the loader's as well.
        # Or the line that was to name the cause.
        if "error while loading shared libraries" in ended.stderr or re.search(r" writev?\(2<.*\(INJECTED\)", calls):
            return None
        if os.strerror(getattr(errno, fault.what)) not in ended.stderr and str(self.work) not in ended.stderr:
            return f"exit code {ended.returncode}, the cause is not named: {ended.stderr[-600:]}"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build/release")
    parser.add_argument("--sample", type=int, metavar="N", help="only N faults, by chance")
    parser.add_argument("--seed", type=int, default=1, help="of that chance")
    parser.add_argument("--keep", action="store_true", help="keep the working directory, also when all went well")
    arguments = parser.parse_args()
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        print("system_calls.py: strace is missing, or may not trace here", file=sys.stderr)
        return 77  # CTest: skipped
    work = pathlib.Path(tempfile.mkdtemp(prefix="faults."))
    campaign = Campaign(arguments.build.resolve(), work)

    faults = []
    for start in "new", "resumed":
        for call, number in campaign.points(start, WRITING):
            faults.append(Fault(start, call, number, "KILL"))
        for call, number in campaign.points(start, sorted(set(WRITING + READING))):
            faults += [Fault(start, call, number, what) for what in ERRORS[SAME.get(call, call)]]
    if arguments.sample and arguments.sample < len(faults):
        faults = random.Random(arguments.seed).sample(faults, arguments.sample)

    rows, problems = collections.defaultdict(collections.Counter), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (fault, outcome) in enumerate(zip(faults, pool.map(campaign.try_fault, range(len(faults)), faults))):
            row = rows[fault.start, "SIGKILL" if fault.what == "KILL" else "error", SAME.get(fault.call, fault.call)]
            row["tried"] += 1
            row[outcome.end if outcome.hit else "not hit"] += 1
            if outcome.problem:
                problems += 1
                row["wrong"] += 1
                print(f"{fault.what} in {fault.call} number {fault.number} of a {fault.start} training ({work}/run{number}): "
                      f"{outcome.problem}", file=sys.stderr)
    columns = ["tried", "not hit", "killed", "ended", "went on", "hung", "wrong"]
    print("| training | fault | in | " + " | ".join(columns) + " |\n|---|---|---|" + "---|" * len(columns))
    for key in sorted(rows):
        print("| " + " | ".join([*key, *(str(rows[key][column]) for column in columns)]) + " |")
    print(f"{len(faults)} faults, {problems} wrong")
    if not problems and not arguments.keep:
        shutil.rmtree(work)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
