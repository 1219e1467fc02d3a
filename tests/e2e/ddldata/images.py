#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays the images of a data set out as people have them, before anybody made TFRecords of them.

usage: images.py DATA_DIR FOLDER      makes in FOLDER
  train/n00000001/n00000001_0.JPEG    a folder for each class
  val/ILSVRC2012_val_00000001.JPEG    side by side
  val_synsets.txt                     the class of each of these, in their order
  val_numbers.txt                     the same as numbers of the list synsets_by_number.txt, which is in an order of its own
  web/000000.jpg, web/000000.cls      the training images as WebDataset names them, classes from 0
"""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from protobuf_fields import fields


def records(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        yield data[at + 12:at + 12 + length]
        at += length + 16


def label_and_jpeg(record):
    features = {}
    for _, feature in fields(dict(fields(record))[1]):
        entry = dict(fields(feature))
        features[entry[1].decode()] = dict(fields(entry[2]))
    packed = dict(fields(features["image/class/label"][3]))[1]
    label = packed if isinstance(packed, int) else packed[0]
    return label, dict(fields(features["image/encoded"][1]))[1]


def synset(label):
    return f"n{label:08d}"


def main(data_dir, folder):
    data_dir, folder = pathlib.Path(data_dir), pathlib.Path(folder)
    counts = {}
    (folder / "web").mkdir(parents=True)
    (folder / "val").mkdir()
    images = [image for path in sorted(data_dir.glob("train-*")) for image in map(label_and_jpeg, records(path))]
    for number, (label, jpeg) in enumerate(images):
        name = synset(label)
        counts[name] = counts.get(name, -1) + 1
        path = folder / "train" / name / f"{name}_{counts[name]}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg)
        (folder / "web" / f"{number:06d}.jpg").write_bytes(jpeg)
        (folder / "web" / f"{number:06d}.cls").write_text(str(label - 1))
    labels = []
    images = [image for path in sorted(data_dir.glob("validation-*")) for image in map(label_and_jpeg, records(path))]
    for number, (label, jpeg) in enumerate(images, 1):
        (folder / "val" / f"ILSVRC2012_val_{number:08d}.JPEG").write_bytes(jpeg)
        labels.append(label)
    by_number = sorted(counts, reverse=True)
    (folder / "val_synsets.txt").write_text("".join(f"{synset(label)}\n" for label in labels))
    (folder / "val_numbers.txt").write_text("".join(f"{by_number.index(synset(label)) + 1}\n" for label in labels))
    (folder / "synsets_by_number.txt").write_text("".join(f"{name}\n" for name in by_number))


if __name__ == "__main__":
    main(*sys.argv[1:])
