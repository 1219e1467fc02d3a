#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the input of one other framework on the CPU: JPEG files decoded, cropped at random, resized and mirrored, in
batches, by the framework's own means.  bench/baselines/loader starts it; FOLDER holds

  records/train-*  TFRecord files      files/*.jpg  the JPEGs in them      tars/*.tar  these, as WebDataset shards

Prints one line of JSON: the versions of what was used and the images/s; with --probe the versions alone.
"""

import argparse
import importlib.metadata
import io
import itertools
import json
import os
import pathlib
import sys
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=list(PEERS))
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--image_size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2, help="that decode, or processes that do")
    parser.add_argument("--warmup_steps", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100, help="batches that are timed")
    return parser.parse_args()


def version_of(*modules):
    return ", ".join(f"{module.__name__} {module.__version__.split('+')[0]}" for module in modules)


# The transforms of torchvision, and where a JPEG's bytes are decoded.


def pillow_image(jpeg):
    import PIL.Image
    return PIL.Image.open(io.BytesIO(jpeg)).convert("RGB")


def torch_image(jpeg):
    import torch
    import torchvision
    return torchvision.io.decode_jpeg(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8),
                                      mode=torchvision.io.ImageReadMode.RGB)


class Training:
    """From the bytes of a JPEG to a tensor of image_size x image_size bytes."""

    def __init__(self, decode, image_size):
        from torchvision.transforms import v2
        last = [v2.PILToTensor()] if decode is pillow_image else []
        self.decode = decode
        self.transform = v2.Compose([v2.RandomResizedCrop(image_size, antialias=True), v2.RandomHorizontalFlip(), *last])

    def __call__(self, jpeg):
        return self.transform(self.decode(jpeg))


class Files:
    """A data set of torch."""

    def __init__(self, paths, transform):
        self.paths = paths
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, place):
        return self.transform(self.paths[place].read_bytes()), place


class EndlessOrder:
    """A sampler of torch: one random order behind the other."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        import torch
        while True:
            yield from torch.randperm(self.count).tolist()


# Each peer: its version and, asked further, endless batches.


def torchvision_batches(arguments, decode):
    import torch
    paths = sorted(arguments.directory.glob("files/*.jpg"))
    yield from torch.utils.data.DataLoader(Files(paths, Training(decode, arguments.image_size)), arguments.batch_size,
                                           sampler=EndlessOrder(len(paths)), num_workers=arguments.threads, drop_last=True)


def torchvision_peer(arguments):
    import torch
    import torchvision
    yield version_of(torchvision)
    yield from torchvision_batches(arguments, torch_image)


def pillow_peer(arguments):
    import PIL
    import torchvision
    yield version_of(torchvision, PIL)
    yield from torchvision_batches(arguments, pillow_image)


def webdataset_peer(arguments):
    import torchvision
    import webdataset
    yield version_of(webdataset)
    tars = [str(path) for path in sorted(arguments.directory.glob("tars/*.tar"))]
    training = Training(torch_image, arguments.image_size)
    images = webdataset.WebDataset(tars, resampled=True, shardshuffle=False).shuffle(256).to_tuple("jpg", "cls")
    batches = images.map_tuple(training, int).batched(arguments.batch_size, partial=False)
    yield from webdataset.WebLoader(batches, batch_size=None, num_workers=arguments.threads)


def tensorflow_peer(arguments):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    yield version_of(tf)
    size = [arguments.image_size, arguments.image_size]

    def load(record):
        jpeg = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string)})["image/encoded"]
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(jpeg), tf.zeros([1, 0, 4]), area_range=[0.08, 1.0],
            aspect_ratio_range=[3 / 4, 4 / 3], max_attempts=100, use_image_if_no_bounding_boxes=True)
        crop = tf.concat([begin[:2], extent[:2]], axis=0)
        image = tf.image.decode_and_crop_jpeg(jpeg, crop, channels=3)
        return tf.image.random_flip_left_right(tf.image.resize(image, size))

    options = tf.data.Options()
    options.threading.private_threadpool_size = arguments.threads
    paths = [str(path) for path in sorted(arguments.directory.glob("records/train-*"))]
    records = tf.data.TFRecordDataset(paths).repeat().shuffle(256)
    images = records.map(load, num_parallel_calls=arguments.threads, deterministic=False)
    yield from images.batch(arguments.batch_size, drop_remainder=True).prefetch(2).with_options(options)


def dali_peer(arguments):
    import nvidia.dali
    from nvidia.dali import fn, types
    yield f"DALI {nvidia.dali.__version__}"
    paths = [str(path) for path in sorted(arguments.directory.glob("files/*.jpg"))]

    @nvidia.dali.pipeline_def(batch_size=arguments.batch_size, num_threads=arguments.threads, device_id=None)
    def training():
        jpegs, _ = fn.readers.file(files=paths, random_shuffle=True)
        images = fn.decoders.image_random_crop(jpegs, device="cpu", random_area=[0.08, 1.0],
                                               random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=100)
        images = fn.resize(images, size=[arguments.image_size, arguments.image_size], interp_type=types.INTERP_LINEAR,
                           antialias=False)
        return fn.flip(images, horizontal=fn.random.coin_flip())

    pipeline = training()
    pipeline.build()
    while True:
        yield pipeline.run()


def ffcv_peer(arguments):
    import cv2
    from ffcv import fields, loader, transforms, writer
    yield f"ffcv {importlib.metadata.version('ffcv')}"
    paths = sorted(arguments.directory.glob("files/*.jpg"))
    written = arguments.directory / "ffcv.beton"
    if not written.exists():  # by compressing anew, at the quality of its example for ImageNet

        class Decoded(Files):
            def __getitem__(self, place):
                return (cv2.cvtColor(cv2.imread(str(self.paths[place])), cv2.COLOR_BGR2RGB),)

        image = fields.RGBImageField(write_mode="jpg", jpeg_quality=90)
        writer.DatasetWriter(str(written), {"image": image}, num_workers=arguments.threads).from_indexed_dataset(
            Decoded(paths, None))
    size = (arguments.image_size, arguments.image_size)
    steps = [fields.rgb_image.RandomResizedCropRGBImageDecoder(size), transforms.RandomHorizontalFlip(),
             transforms.ToTensor()]
    # One epoch that is long enough, for each begins with empty hands.
    wanted = arguments.batch_size * (arguments.warmup_steps + arguments.steps + arguments.threads)
    places = list(range(len(paths))) * (wanted // len(paths) + 1)
    yield from loader.Loader(str(written), batch_size=arguments.batch_size, num_workers=arguments.threads, os_cache=True,
                             indices=places, order=loader.OrderOption.RANDOM, drop_last=True, pipelines={"image": steps})


PEERS = {
    "torchvision": torchvision_peer,
    "torchvision-pillow": pillow_peer,
    "tf.data": tensorflow_peer,
    "DALI": dali_peer,
    "FFCV": ffcv_peer,
    "webdataset": webdataset_peer,
}


def main():
    arguments = parse_arguments()
    peer = PEERS[arguments.peer](arguments)
    result = {"version": next(peer)}
    if not arguments.probe:
        for _ in itertools.islice(peer, arguments.warmup_steps):
            pass
        start = time.perf_counter()
        steps = sum(1 for _ in itertools.islice(peer, arguments.steps))
        result["images_per_second"] = arguments.batch_size * steps / (time.perf_counter() - start)
        if steps < arguments.steps:
            sys.exit(f"{arguments.peer} ended after {steps} steps")
    peer.close()  # its workers end before the next peer begins
    print(json.dumps(result))


if __name__ == "__main__":
    main()
