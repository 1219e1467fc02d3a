#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the logs of ddltraind that other programs read, from their public formats alone, and complains.

usage: read_logs.py mllog FILE
       read_logs.py json FILE
       read_logs.py lines WORD FILE   prints the JSON of each full line "WORD JSON", and complains of others; what follows
                                      the last full line is left out
       read_logs.py metrics FILE      prints NAME{LABELS} VALUE of each
       read_logs.py events FILE       prints STEP TAG VALUE of each scalar, STEP session for the start of a launch;
                                      what follows the last whole event is left out
       read_logs.py trace FILE        prints RANK NAME NUMBER of each event, in the order of their beginnings
"""

import json
import math
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from protobuf_fields import fields


def lines(word, path):
    """A log of which a killed program may have written a part of a line."""
    for line in open(path, encoding="utf-8").read().split("\n")[:-1]:
        if not line.startswith(word + " "):
            raise ValueError(f"not a line of {word}: {line!r}")
        print(json.dumps(json.loads(line[len(word) + 1:])))


def mllog(path, division="open"):
    """What the compliance checker of MLPerf training 4.0 asks of a run, but for 75.9 %."""
    entries = []
    for line in open(path, encoding="utf-8"):
        if not line.startswith(":::MLLOG "):
            raise ValueError(f"not a line of MLLOG: {line!r}")
        entries.append(json.loads(line[len(":::MLLOG "):]))
    by_key = {}
    for entry in entries:
        missing = {"namespace", "time_ms", "event_type", "key", "value", "metadata"} - entry.keys()
        if missing:
            raise ValueError(f"{entry}: no {missing}")
        by_key.setdefault(entry["key"], []).append(entry)

    def one(key):
        found = by_key.get(key, [])
        if len(found) != 1:
            raise ValueError(f"{len(found)} lines of {key}, not 1" if found else f"no {key}")
        return found[0]

    for key in ("submission_org", "submission_platform", "train_samples", "eval_samples"):
        if one(key)["value"] in ("", None):
            raise ValueError(f"{key} has no value")
    for key, allowed in (("submission_benchmark", ["resnet"]), ("submission_division", [division]),
                         ("submission_status", ["cloud", "onprem", "preview", "research"])):
        if one(key)["value"] not in allowed:
            raise ValueError(f"{key} is {one(key)['value']}")
    for key in ("cache_clear", "init_start", "block_start", "block_stop", "epoch_start", "epoch_stop", "eval_start",
                "eval_stop", "eval_accuracy"):
        if key not in by_key:
            raise ValueError(f"no {key}")
    order = [one(key)["time_ms"] for key in ("init_start", "init_stop", "run_start", "run_stop")]
    if order != sorted(order):
        raise ValueError(f"init_start, init_stop, run_start, run_stop at {order}")
    keys = [entry["key"] for entry in entries]
    if keys.index("init_stop") > keys.index("run_start") or keys.index("block_start") < keys.index("run_start"):
        raise ValueError(f"events out of order: {keys}")
    if "status" not in one("run_stop")["metadata"]:
        raise ValueError("run_stop has no status")
    for entry in by_key["block_start"]:
        if not entry["metadata"]["epoch_count"] > 0 or "first_epoch_num" not in entry["metadata"]:
            raise ValueError(f"{entry}")
    for key in ("epoch_start", "epoch_stop", "eval_start", "eval_stop", "eval_accuracy"):
        for entry in by_key[key]:
            if "epoch_num" not in entry["metadata"]:
                raise ValueError(f"{entry}: no epoch_num")
    if not any(entry["value"] < 1 for entry in by_key["eval_accuracy"]):
        raise ValueError("eval_accuracy is no fraction")
    if division == "closed":
        closed_resnet(one)
    starts = [entry["metadata"]["epoch_num"] for entry in by_key["epoch_start"]]
    stops = [entry["metadata"]["epoch_num"] for entry in by_key["epoch_stop"]]
    if starts != stops or starts != list(range(starts[0], starts[0] + len(starts))):
        raise ValueError(f"epochs begin {starts} and end {stops}")


def closed_resnet(one):
    """closed_resnet.yaml, and closed_resnet_lars.yaml or closed_resnet_sgd.yaml."""
    for key in ("gradient_accumulation_steps", "global_batch_size"):
        if not one(key)["value"] > 0:
            raise ValueError(f"{key} is {one(key)['value']}")
    name = one("opt_name")["value"]
    if name not in ("sgd", "lars"):
        raise ValueError(f"opt_name is {name}")
    keys = ["base_learning_rate", "learning_rate_decay_steps", "momentum"]
    keys += ["learning_rate_warmup_epochs"] if name == "lars" else []
    for key in keys:
        one(f"{name}_opt_{key}")
    if one(f"{name}_opt_end_learning_rate")["value"] != 0.0001 or one(f"{name}_opt_learning_rate_decay_poly_power")["value"] != 2:
        raise ValueError("another end of the decay, or power")
    if not math.log2(one(f"{name}_opt_weight_decay")["value"] / 0.0001).is_integer():
        raise ValueError(f"{name}_opt_weight_decay is 0.0001 times no power of two")
    if name == "lars" and one("lars_epsilon")["value"] != 0:
        raise ValueError("lars_epsilon is not 0")
    if name == "sgd":
        one("model_bn_span")


def metrics(path):
    """Both Prometheus' text format 0.0.4 and OpenMetrics 1.0, as far as gauges go."""
    text = open(path, encoding="utf-8").read()
    if not text.endswith("\n# EOF\n") or text.count("# EOF") != 1:
        raise ValueError("it does not end with its one # EOF")
    label = r'[a-z0-9_]+="(?:[^"\\\n]|\\["\\n])*"'
    sample = re.compile(r"([a-z_0-9]+)\{(%s(?:,%s)*)\} (NaN|[+-]Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)" % (label, label))
    families, name, told, seen = set(), None, [], set()
    for line in text.splitlines()[:-1]:
        if head := re.fullmatch(r"# (HELP|TYPE|UNIT) ([a-z_0-9]+) (.+)", line):
            kind, of, what = head.groups()
            if kind == "HELP":
                if of in families:
                    raise ValueError(f"{of} is there twice")
                families.add(of)
                name, told = of, []
            told.append(kind)
            if of != name or told not in (["HELP"], ["HELP", "TYPE"], ["HELP", "TYPE", "UNIT"]):
                raise ValueError(f"{line}: after {told} of {name}")
            if kind == "TYPE" and what != "gauge" or kind == "UNIT" and not of.endswith("_" + what):
                raise ValueError(line)
            if kind == "HELP" and of.endswith(("_total", "_count", "_sum", "_bucket", "_info_info")):
                raise ValueError(f"{of} is no name of a gauge")
        elif (found := sample.fullmatch(line)) and found.group(1) == name and "TYPE" in told:
            if found.group(1, 2) in seen:
                raise ValueError(f"{line}: twice")
            seen.add(found.group(1, 2))
            print(line)
        else:
            raise ValueError(f"not a line of this format: {line!r}")


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    """The data of each record of a TFRecord file."""
    at = 0
    while at + 16 <= len(content):
        length, check = struct.unpack_from("<QI", content, at)
        if check != masked_crc32c(content[at:at + 8]):
            raise ValueError(f"offset {at}: the checksum of the length is wrong")
        if at + 16 + length > len(content):
            return
        data = content[at + 12:at + 12 + length]
        if struct.unpack_from("<I", content, at + 12 + length)[0] != masked_crc32c(data):
            raise ValueError(f"offset {at}: the checksum of the data is wrong")
        yield data
        at += 16 + length


def events(path):
    """TensorBoard's event file: Event and Summary of TensorFlow's event.proto and summary.proto."""
    for index, record in enumerate(records(open(path, "rb").read())):
        event = dict(fields(record))
        if not event.get(1, 0) > 1e9:
            raise ValueError(f"event {index}: wall_time is {event.get(1)}")
        if (index == 0) != (event.get(3) == b"brain.Event:2"):
            raise ValueError(f"event {index}: the first one, and no other, is the version: {event}")
        step = event.get(2, 0)
        if 7 in event:
            print(step, "session", dict(fields(event[7])).get(1))
        for number, value in fields(event.get(5, b"")):
            scalar = dict(fields(value))
            if number != 1 or scalar.keys() != {1, 2}:
                raise ValueError(f"event {index}: a value has the fields {sorted(scalar)}")
            print(step, scalar[1].decode(), scalar[2])


def trace(path):
    """Chrome's trace events; phases of a rank follow each other, and are within their step but for the input wait."""
    document = json.load(open(path, encoding="utf-8"))
    threads, spans = {}, []
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            threads[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
        elif event["ph"] != "X" or event["ts"] < 0 or event["dur"] < 0:
            raise ValueError(f"{event}")
        else:
            spans.append(event)
    for event in spans:
        place = event["pid"], event["tid"]
        if ("process_name", event["pid"], 0) not in threads or ("thread_name", *place) not in threads:
            raise ValueError(f"{event}: its process or thread has no name")
        if not threads["process_name", event["pid"], 0].startswith(f"rank {event['pid']} on "):
            raise ValueError(f"{event}: of {threads['process_name', event['pid'], 0]}")
    steps = {(e["pid"], e["args"]["step"]): e for e in spans if e["cat"] == "step"}
    last_end = {}
    microsecond = 1.0
    for event in sorted(spans, key=lambda e: e["ts"]):
        if event["cat"] == "phase":
            step = steps[event["pid"], event["args"]["step"]]
            end = event["ts"] + event["dur"]
            if event["ts"] < last_end.get(event["pid"], 0) - microsecond or end > step["ts"] + step["dur"] + microsecond:
                raise ValueError(f"{event}: it is not where the step {step} has room")
            last_end[event["pid"]] = end
        number = next(iter(event["args"].values()))
        print(event["pid"], event["name"].replace(" ", "_"), number)


if __name__ == "__main__":
    try:
        {"mllog": mllog, "json": lambda path: json.load(open(path, encoding="utf-8")), "lines": lines, "metrics": metrics,
         "events": events, "trace": trace}[sys.argv[1]](*sys.argv[2:])
    except (ValueError, KeyError) as problem:
        sys.exit(f"{sys.argv[2]}: {problem}")
