#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays the images of a data set out as people have them, before anybody made TFRecords of them.

usage: images.py DATA_DIR FOLDER      makes in FOLDER
  train/n00000001/n00000001_0.JPEG    a directory for each class
  val/ILSVRC2012_val_00000001.JPEG    side by side
  val_synsets.txt                     the class of each of these, in their order
  val_numbers.txt                     the same as numbers of the list synsets_by_number.txt, which is in an order of its own
  boxes.csv                           bounding boxes of every other training image, as TensorFlow's script writes them
  annotations/n00000001/n00000001_0.xml  the same as ImageNet has them
  web/000000.jpg, web/000000.cls      the training images as WebDataset names them, classes from 0
"""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from protobuf_fields import fields

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def records(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        yield data[at + 12:at + 12 + length]
        at += length + 16


def content(record):
    """Label, JPEG, and the corners of the bounding boxes: xmin, ymin, xmax, ymax."""
    features = {}
    for _, feature in fields(dict(fields(record))[1]):
        entry = dict(fields(feature))
        features[entry[1].decode()] = dict(fields(entry[2]))
    packed = dict(fields(features["image/class/label"][3]))[1]
    label = packed if isinstance(packed, int) else packed[0]
    lists = []
    for corner in CORNERS:
        values = dict(fields(features.get(f"image/object/bbox/{corner}", {2: b""})[2])).get(1, b"")
        lists.append(struct.unpack(f"<{len(values) // 4}f", values))
    return label, dict(fields(features["image/encoded"][1]))[1], list(zip(*lists))


def synset(label):
    return f"n{label:08d}"


def annotation(boxes):
    """In pixels of an image of another size than the one stored, on which four digits are exact."""
    side = 10000
    objects = "".join("<object><bndbox>" + "".join(
        f"<{name}>{round(corner * side)}</{name}>" for name, corner in zip(CORNERS, box)
    ) + "</bndbox></object>\n" for box in boxes)
    return f"<annotation>\n<filename>%s</filename>\n<size><width>{side}</width><height>{side}</height></size>\n{objects}</annotation>\n"


def main(data_dir, directory):
    data_dir, directory = pathlib.Path(data_dir), pathlib.Path(directory)
    counts = {}
    (directory / "web").mkdir(parents=True)
    (directory / "val").mkdir()
    images = [image for path in sorted(data_dir.glob("train-*")) for image in map(content, records(path))]
    lines = []
    for number, (label, jpeg, boxes) in enumerate(images):
        name = synset(label)
        counts[name] = counts.get(name, -1) + 1
        path = directory / "train" / name / f"{name}_{counts[name]}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg)
        if number % 2 == 0:
            path = directory / "annotations" / name / f"{path.stem}.xml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(annotation(boxes))
            lines += [f"{path.stem}.JPEG," + ",".join(f"{corner:.4f}" for corner in box) + "\n" for box in boxes]
        (directory / "web" / f"{number:06d}.jpg").write_bytes(jpeg)
        (directory / "web" / f"{number:06d}.cls").write_text(str(label - 1))
    (directory / "boxes.csv").write_text("".join(lines))
    labels = []
    images = [image for path in sorted(data_dir.glob("validation-*")) for image in map(content, records(path))]
    for number, (label, jpeg, _) in enumerate(images, 1):
        (directory / "val" / f"ILSVRC2012_val_{number:08d}.JPEG").write_bytes(jpeg)
        labels.append(label)
    by_number = sorted(counts, reverse=True)
    (directory / "val_synsets.txt").write_text("".join(f"{synset(label)}\n" for label in labels))
    (directory / "val_numbers.txt").write_text("".join(f"{by_number.index(synset(label)) + 1}\n" for label in labels))
    (directory / "synsets_by_number.txt").write_text("".join(f"{name}\n" for name in by_number))


if __name__ == "__main__":
    main(*sys.argv[1:])
