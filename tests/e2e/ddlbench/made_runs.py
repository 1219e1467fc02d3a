# SPDX-License-Identifier: Apache-2.0
"""Directories of runs whose every number is known, as ddltraind leaves them, with something for each plot of a report."""

import json
import pathlib

FIRST_STEP = 20  # log.json begins with it
PHASES = ("input wait", "forward", "backward", "exposed all-reduce", "update")
BATCH = 8  # of a rank


def speed_of(ranks, repeat, step):
    """images/s of a step: 90 % of the ideal, with a wave."""
    efficiency = 1 if ranks == 1 else 0.9
    return ranks * 50 * efficiency * (1 + 0.08 * repeat + 0.01 * ((step * 7) % 5 - 2))


def loss_of(ranks, repeat, step):
    return 7 / (1 + 0.05 * (step - FIRST_STEP)) + 0.1 * repeat + 0.3 * ranks


def log_lines(ranks, repeat, steps, options=()):
    def line(kind, second, **more):
        time = {"timestamp": str(1e9 + second), "datetime": "2026-11-23 10:00:00.000000", "elapsedtime": str(second)}
        return "DLLL " + json.dumps({**time, "type": kind, **more})

    yield line("LOG", 0, step="PARAMETER", data={"mode": "train_and_evaluate", "batch_size": BATCH, "precision": "fp32",
                                                 "results_dir": f"r{ranks}-{repeat}", **dict(options)})
    yield line("METADATA", 0, metric="run", metadata={
        "program": "ddltraind 0.1.0", "command": f"ddltraind --batch_size={BATCH} --data_dir='<images> & more'",
        "ranks": ranks, "nodes": 1, "host": "laptop", "backend": "cpu: oneDNN 2.6.3", "communication": "MPI"})
    for step in range(FIRST_STEP, FIRST_STEP + steps):
        yield line("LOG", step, step=[0, step], data={"imgs_per_sec": speed_of(ranks, repeat, step),
                                                      "cross_entropy": loss_of(ranks, repeat, step)})
    yield line("LOG", steps, step=[], data={"train_throughput": ranks * 45.0})
    yield line("LOG", steps, step=[], data={"top1_accuracy": 0.7 + 0.01 * repeat, "top5_accuracy": 0.9, "eval_loss": 1.25,
                                            "eval_throughput": 150.0})


def trace_lines(ranks):
    yield '{"traceEvents": ['
    for rank in range(ranks):
        yield json.dumps({"name": "process_name", "ph": "M", "pid": rank, "tid": 0,
                          "args": {"name": f"rank {rank} on laptop"}}) + ","
        for step in (30, 31):
            yield json.dumps({"name": "step", "cat": "step", "ph": "X", "ts": 0, "dur": 160000, "pid": rank, "tid": 0,
                              "args": {"step": step}}) + ","
            for i, phase in enumerate(PHASES):
                yield json.dumps({"name": phase, "cat": "phase", "ph": "X", "ts": 0, "dur": 1000 * (i + 1) * (rank + 1) + 20000,
                                  "pid": rank, "tid": 1, "args": {"step": step}}) + ","
    yield '{"name": "end", "ph": "M", "pid": 0, "tid": 0, "args": {}}'
    yield '], "displayTimeUnit": "ms"}'


def gpu_lines(gpus, samples):
    yield "==1== NVPROF is profiling process 1"
    yield '"Start","Duration","Device","System","Name"'
    yield "s,ms,,,"
    for i in range(samples):
        for gpu in range(gpus):
            for name, value in (("SM/Memory Clock (MHz)", f"{1300 + 10 * (i % 7) + 70 * gpu}/{877 - 20 * gpu}"), ("Temperature (C)", str(40 + i % 5 + 6 * gpu)),
                                ("Power/Limit (mW)", f"{200000 + 1000 * gpu}/300000")):
                yield f'{0.5 * i},,"Tesla V100-SXM2-16GB ({gpu})","{value}","[{name}]"'


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def make(directory, ranks=(1, 2, 4), repeats=2, steps=60):
    """Runs of each number of ranks, in FOLDER/1n<ranks>g/<repeat>."""
    directory = pathlib.Path(directory)
    for count in ranks:
        for repeat in range(1, repeats + 1):
            run = directory / f"1n{count}g" / str(repeat)
            write(run / "log.json", log_lines(count, repeat, steps))
            if repeat == 1:
                write(run / "trace.json", trace_lines(count))
                write(run / "gpu.csv", gpu_lines(count, 50))
