#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Works the numbers of ddlbench report --json out again, from the raw lines of the logs and by other means, and compares.

usage: recompute.py REPORT.json FOLDER      of runs with no more than 2,048 steps
"""

import json
import math
import pathlib
import statistics
import sys

BATCHES = 20


def student_quantile(probability, degrees):
    """By Simpson's rule and bisection."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def area(t, parts=2000):
        width = t / parts
        density = [(1 + (i * width) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(parts + 1)]
        return scale * width / 3 * (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2]))

    low, high = 0.0, 1.0
    while 0.5 + area(high) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 + area(middle) < probability else (low, middle)
    return high


def mean_margin(values):
    if len(values) < 2:
        return None
    return student_quantile(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def difference_margin(a, b):
    if len(a) < 2 or len(b) < 2:
        return None
    of_a, of_b = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    degrees = (of_a + of_b) ** 2 / (of_a ** 2 / (len(a) - 1) + of_b ** 2 / (len(b) - 1))
    return student_quantile(0.975, degrees) * math.sqrt(of_a + of_b)


class Run:
    def __init__(self, log):
        entries = [json.loads(line.split("DLLL ", 1)[1]) for line in open(log, encoding="utf-8")]
        options = next(entry["data"] for entry in entries if entry.get("step") == "PARAMETER")
        self.ranks = next(entry["metadata"]["ranks"] for entry in entries if entry.get("metric") == "run")
        self.batch = options["batch_size"] * self.ranks
        speeds = [entry["data"]["imgs_per_sec"] for entry in entries if isinstance(entry.get("step"), list) and entry["step"]]
        self.seconds = [self.batch / speed for speed in speeds]
        self.speed = self.batch * len(speeds) / sum(self.seconds)
        size = len(speeds) // BATCHES if len(speeds) >= 2 * BATCHES else 1
        count = BATCHES if len(speeds) >= 2 * BATCHES else len(speeds)
        self.batch_speeds = [self.batch * size / sum(self.seconds[size * i:size * (i + 1)]) for i in range(count)]


def same(what, found, expected):
    if expected is None or found is None:
        assert found is expected, (what, found, expected)
    else:
        assert math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-12), (what, found, expected)


def quantile(values, probability):
    values = sorted(values)
    place = probability * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def main(report_file, directory):
    report = json.load(open(report_file, encoding="utf-8"))
    logs = sorted(pathlib.Path(directory).rglob("log.json"))
    runs = [Run(log) for log in logs]
    assert len(report["runs"]) == len(runs) > 1, (len(report["runs"]), len(runs))
    for said, run in zip(report["runs"], runs):
        name = said["name"]
        same(name, said["ranks"], run.ranks)
        same(name, said["global_batch"], run.batch)
        same(name, said["steps"], len(run.seconds))
        same(name, said["images_per_second"]["value"], run.speed)
        same(name, said["images_per_second"]["margin"], mean_margin(run.batch_speeds))
        step = said["step_seconds"]
        for key, expected in (("mean", statistics.mean(run.seconds)), ("sd", statistics.stdev(run.seconds)),
                              ("min", min(run.seconds)), ("max", max(run.seconds)), ("median", statistics.median(run.seconds)),
                              ("p95", quantile(run.seconds, 0.95)), ("p99", quantile(run.seconds, 0.99))):
            same((name, key), step[key], expected)

    by_ranks = {}
    for run in runs:
        by_ranks.setdefault(run.ranks, []).append(run)
    for group, ranks in zip(report["groups"], sorted(by_ranks), strict=True):
        speeds = [run.speed for run in by_ranks[ranks]]
        same(group["name"], group["images_per_second"]["value"], statistics.mean(speeds))
        same(group["name"], group["images_per_second"]["margin"], mean_margin(speeds))
    fewest = min(by_ranks)
    base = statistics.mean(run.speed for run in by_ranks[fewest])
    points = report["scaling"][0]["points"]
    for point, ranks in zip(points, sorted(by_ranks), strict=True):
        speed = statistics.mean(run.speed for run in by_ranks[ranks])
        same("ideal", point["ideal"], base * ranks / fewest)
        same("efficiency", point["efficiency"], speed / (base * ranks / fewest))

    for said, run in zip(report["run_differences"], runs[1:], strict=True):
        same(said["name"], said["images_per_second"]["value"], run.speed - runs[0].speed)
        same(said["name"], said["percent"]["value"], 100 * (run.speed / runs[0].speed - 1))
        margin = difference_margin(runs[0].batch_speeds, run.batch_speeds)
        same(said["name"], said["images_per_second"]["margin"], margin)
        same(said["name"], said["percent"]["margin"], None if margin is None else 100 * margin / runs[0].speed)
    first = [run.speed for run in by_ranks[runs[0].ranks]]
    others = [ranks for ranks in sorted(by_ranks) if ranks != runs[0].ranks]
    for said, ranks in zip(report["group_differences"], others, strict=True):
        speeds = [run.speed for run in by_ranks[ranks]]
        same(said["name"], said["images_per_second"]["value"], statistics.mean(speeds) - statistics.mean(first))
        same(said["name"], said["images_per_second"]["margin"], difference_margin(first, speeds))
    print(f"{len(runs)} runs agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
