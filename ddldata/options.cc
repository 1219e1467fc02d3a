// SPDX-License-Identifier: Apache-2.0

#include "ddldata/options.h"

#include "support/build.h"

namespace trainer {
namespace {

using support::Command;
using support::MakeCommand;
using support::OneOf;
using support::Required;

support::Option Threads(int& threads) { return {"--threads", &threads, "N", "Threads"}; }

Command SynthCommand(DataToolOptions& options) {
  SynthOptions& values = options.synth;
  return MakeCommand(
      options.command, DataToolCommand::kSynth, "synth",
      "Create a synthetic data set like ImageNet, of JPEG images whose classes differ in shape and "
      "texture, not in colour",
      {Required({"DIR", &values.dir, "", "Directory of the data set; made if need be"}),
       {"--classes", &values.classes, "N", "Classes, 1 to 200; file labels are 1..CLASSES"},
       {"--images", &values.images, "N", "Training images"},
       {"--validation_images", &values.validation_images, "N", "Validation images"},
       {"--size", &options.size, "MIN-MAX", "Width and height are drawn from MIN-MAX pixels"},
       {"--shards", &values.shards, "N", "Files train-*"},
       {"--validation_shards", &values.validation_shards, "N", "Files validation-*"},
       {"--seed", &values.seed, "N", "The same seed makes the same bytes"},
       Threads(values.threads),
       {"--force", &values.force, "", "Replace the data files that are in DIR"}});
}

support::Option Labels(const std::string& split, ConvertedSplit& values) {
  return {"--" + split + "_labels", &values.labels, "FILE",
          "The classes of these images: a line for each, in the order of their names, or lines of "
          "file and class"};
}

Command ConvertCommand(DataToolOptions& options) {
  ConvertOptions& values = options.convert;
  return MakeCommand(
      options.command, DataToolCommand::kConvert, "convert",
      "Make TFRecords of images in directories and tars, in the names and features of TensorFlow's "
      "converter for ImageNet; the same command continues where it was stopped",
      {Required({"DATA_DIR", &values.dir, "",
                 "Directory of the data set, before the options; made if need be"}),
       {"--train", &values.train.sources, "FILE|DIR",
        "Where the images of train-* are: a directory of class directories; a tar of such or of "
        "tars, a "
        "WebDataset shard, several of them or a directory of them; or images side by side, with a "
        "list of their classes. Takes all words up to the next option"},
       Labels("train", values.train),
       {"--validation", &values.validation.sources, "FILE|DIR",
        "Where those of validation-* are, in the same way"},
       Labels("validation", values.validation),
       {"--boxes", &values.boxes, "FILE|DIR",
        "Bounding boxes of training images, for random crops in training: lines "
        "FILE,xmin,ymin,xmax,ymax in parts of width and height, as TensorFlow's script writes "
        "them, or a directory or a tar of ImageNet's annotations (*.xml)"},
       {"--class_list", &values.class_list, "FILE",
        "Line n is the class of label n and, behind a blank, its text; without it the classes of "
        "the training images are counted in the order of their names"},
       {"--class_numbers", &values.class_numbers, "FILE",
        "Line n is the class that the number n means in lists of classes"},
       {"--shards", &values.train.shards, "N",
        "Files train-*; 0: one for 100 images, at most 1024"},
       {"--validation_shards", &values.validation.shards, "N",
        "Files validation-*; 0: one for 100 images, at most 128"},
       {"--seed", &values.seed, "N", "Shuffles the images; the same seed, the same bytes"},
       {"--shorter_side", &values.image.shorter_side, "N",
        "Make larger images so small that their shorter side has N pixels; 0: no image"},
       {"--quality", &values.image.quality, "N", "Of the JPEGs that --shorter_side makes"},
       OneOf({"--bad_images", &options.bad_images, "",
              "At an image that cannot be decoded: stop, or skip it with a note"},
             {"stop", "skip"}),
       Threads(values.threads)});
}

// Of the commands for a data set that is there.
support::Option DataDir(std::string& directory) {
  return Required({"DATA_DIR", &directory, "", "Directory with train-*, validation-*"});
}

Command IndexCommand(DataToolOptions& options) {
  return MakeCommand(
      options.command, DataToolCommand::kIndex, "index",
      "Make DALI's index files, as tfrecord2idx does: one per data file, same name",
      {DataDir(options.data_dir),
       Required({"INDEX_DIR", &options.index_dir, "", "Directory of the indices; made if need be"}),
       Threads(options.threads)});
}

Command ManifestCommand(DataToolOptions& options) {
  return MakeCommand(
      options.command, DataToolCommand::kManifest, "manifest",
      "Write DATA_DIR/ddldata.manifest: the records, bytes and checksum of every data file as they "
      "are now; training and verify then notice what is missing, doubled or exchanged",
      {DataDir(options.data_dir),
       {"--part", &options.is_part, "",
        "The files are meant to be a part of the set that their numbers tell of"},
       Threads(options.threads)});
}

Command VerifyCommand(DataToolOptions& options) {
  VerifyOptions& values = options.verify;
  return MakeCommand(
      options.command, DataToolCommand::kVerify, "verify",
      "Check every record: checksums, features, label, and the whole image decoded; and all files "
      "by their numbers and by ddldata.manifest; exit code 65 if anything is wrong",
      {DataDir(values.data_dir),
       {"--index_dir", &values.index_dir, "DIR", "Check these index files too"},
       {"--classes", &values.classes, "N", "Labels are 1..CLASSES"},
       Threads(values.threads)});
}

Command StatsCommand(DataToolOptions& options) {
  return MakeCommand(
      options.command, DataToolCommand::kStats, "stats",
      "Count images, classes and bytes, say how large images are, and find those that are there "
      "more than once",
      {DataDir(options.data_dir),
       {"--json", &options.as_json, "", "As JSON, with every image that is there again"},
       Threads(options.threads)});
}

Command SplitCommand(DataToolOptions& options) {
  SplitSetOptions& values = options.split;
  return MakeCommand(
      options.command, DataToolCommand::kSplit, "split",
      "Make a data set of another one's records: in another number of files, or with a validation "
      "part of some training images; the same command continues where it was stopped",
      {Required({"FROM_DIR", &values.from, "", "Directory with train-*, validation-*; only read"}),
       Required({"DATA_DIR", &values.dir, "", "Directory of the new data set; made if need be"}),
       {"--shards", &values.shards, "N", "Files train-*; 0: as many as FROM_DIR has"},
       {"--validation_shards", &values.validation_shards, "N",
        "Files validation-*; 0: as many as FROM_DIR has, or one for 100 images, at most 128"},
       {"--validation_images", &values.validation_images, "N",
        "Draw so many of the training images and make them validation-*"},
       {"--seed", &values.seed, "N", "Of the draw; the same seed, the same bytes"},
       Threads(values.threads)});
}

}  // namespace

support::Program DescribeOptions(DataToolOptions& options) {
  return {
      .root = {.name = "ddldata",
               .help = "Makes, indexes and checks TFRecord data sets of JPEG images.",
               .commands = {SynthCommand(options), ConvertCommand(options), IndexCommand(options),
                            ManifestCommand(options), VerifyCommand(options), StatsCommand(options),
                            SplitCommand(options)}},
      .version = support::VersionText(support::Part::kTrainer),
      .version_help = support::kVersionHelp,
      .footer = support::HelpFooter()};
}

}  // namespace trainer
