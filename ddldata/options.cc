// SPDX-License-Identifier: Apache-2.0

#include "ddldata/options.h"

#include <CLI/CLI.hpp>

#include "support/option_values.h"
#include "support/reference.h"

namespace trainer {
namespace {

CLI::App* AddCommand(CLI::App& app, DataToolOptions& options, DataToolCommand command,
                     const std::string& name, const std::string& description) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  subcommand->parse_complete_callback([&options, command] { options.command = command; });
  return subcommand;
}

void AddThreads(CLI::App* subcommand, int& threads) {
  subcommand->add_option("--threads", threads, "Threads")->capture_default_str()->type_name("N");
}

template <typename Number>
void AddNumber(CLI::App* subcommand, const std::string& name, Number& number,
               const std::string& help) {
  subcommand->add_option(name, number, help)->capture_default_str()->type_name("N");
}

void AddSynth(CLI::App& app, DataToolOptions& options) {
  CLI::App* synth = AddCommand(app, options, DataToolCommand::kSynth, "synth",
                               "Make an ImageNet-like data set of painted JPEG images, whose "
                               "classes differ in shape and texture, not in colour");
  SynthOptions& values = options.synth;
  synth->add_option("DIR", values.dir, "Directory of the data set; made if need be")->required();
  AddNumber(synth, "--classes", values.classes, "Classes, 1 to 200; file labels are 1..CLASSES");
  AddNumber(synth, "--images", values.images, "Training images");
  AddNumber(synth, "--validation_images", values.validation_images, "Validation images");
  synth->add_option("--size", options.size, "Width and height are drawn from MIN-MAX pixels")
      ->capture_default_str()
      ->type_name("MIN-MAX");
  AddNumber(synth, "--shards", values.shards, "Files train-*");
  AddNumber(synth, "--validation_shards", values.validation_shards, "Files validation-*");
  AddNumber(synth, "--seed", values.seed, "The same seed makes the same bytes");
  AddThreads(synth, values.threads);
  synth->add_flag("--force", values.force, "Replace the data files that are in DIR");
}

void AddSplit(CLI::App* convert, const std::string& name, const std::string& help,
              ConvertedSplit& split) {
  convert->add_option("--" + name, split.sources, help)->type_name("FILE|DIR");
  convert
      ->add_option("--" + name + "_labels", split.labels,
                   "The classes of these images: a line for each, in the order of their names, or "
                   "lines of file and class")
      ->type_name("FILE");
}

void AddConvert(CLI::App& app, DataToolOptions& options) {
  CLI::App* convert = AddCommand(
      app, options, DataToolCommand::kConvert, "convert",
      "Make TFRecords of images in folders and tars, in the names and features of TensorFlow's "
      "converter for ImageNet; the same command goes on where it was stopped");
  ConvertOptions& values = options.convert;
  convert
      ->add_option("DATA_DIR", values.dir,
                   "Directory of the data set, before the options; made if need be")
      ->required();
  AddSplit(
      convert, "train",
      "Where the images of train-* are: a folder of class folders; a tar of such or of tars, a "
      "WebDataset shard, several of them or a folder of them; or images side by side, with a "
      "list of their classes. Takes all words up to the next option",
      values.train);
  AddSplit(convert, "validation", "Where those of validation-* are, in the same way",
           values.validation);
  convert
      ->add_option("--boxes", values.boxes,
                   "Bounding boxes of training images, for random crops in training: lines "
                   "FILE,xmin,ymin,xmax,ymax in parts of width and height, as TensorFlow's script "
                   "writes them, or a folder or a tar of ImageNet's annotations (*.xml)")
      ->type_name("FILE|DIR");
  convert
      ->add_option("--class_list", values.class_list,
                   "Line n is the class of label n and, behind a blank, its text; without it the "
                   "classes of the training images are counted in the order of their names")
      ->type_name("FILE");
  convert
      ->add_option("--class_numbers", values.class_numbers,
                   "Line n is the class that the number n means in lists of classes")
      ->type_name("FILE");
  AddNumber(convert, "--shards", values.train.shards,
            "Files train-*; 0: one for 100 images, at most 1024");
  AddNumber(convert, "--validation_shards", values.validation.shards,
            "Files validation-*; 0: one for 100 images, at most 128");
  AddNumber(convert, "--seed", values.seed, "Shuffles the images; the same seed, the same bytes");
  AddNumber(convert, "--shorter_side", values.image.shorter_side,
            "Make larger images so small that their shorter side has N pixels; 0: no image");
  AddNumber(convert, "--quality", values.image.quality, "Of the JPEGs that --shorter_side makes");
  convert
      ->add_option("--bad_images", options.bad_images,
                   "At an image that cannot be decoded: stop, or skip it with a note")
      ->capture_default_str()
      ->check(CLI::IsMember({"stop", "skip"}));
  AddThreads(convert, values.threads);
}

void AddIndex(CLI::App& app, DataToolOptions& options) {
  CLI::App* index =
      AddCommand(app, options, DataToolCommand::kIndex, "index",
                 "Make DALI's index files, as tfrecord2idx does: one per data file, same name");
  index->add_option("DATA_DIR", options.data_dir, "Directory with train-*, validation-*")
      ->required();
  index->add_option("INDEX_DIR", options.index_dir, "Directory of the indices; made if need be")
      ->required();
  AddThreads(index, options.threads);
}

void AddManifest(CLI::App& app, DataToolOptions& options) {
  CLI::App* manifest = AddCommand(
      app, options, DataToolCommand::kManifest, "manifest",
      "Write DATA_DIR/ddldata.manifest: the records, bytes and checksum of every data file as they "
      "are now; training and verify then notice what is missing, doubled or exchanged");
  manifest->add_option("DATA_DIR", options.data_dir, "Directory with train-*, validation-*")
      ->required();
  manifest->add_flag("--part", options.is_part,
                     "The files are meant to be a part of the set that their numbers tell of");
  AddThreads(manifest, options.threads);
}

void AddVerify(CLI::App& app, DataToolOptions& options) {
  CLI::App* verify = AddCommand(app, options, DataToolCommand::kVerify, "verify",
                                "Check every record: checksums, features, label, and the whole "
                                "image decoded; and all files by their numbers and by "
                                "ddldata.manifest; exit code 65 if anything is wrong");
  verify->add_option("DATA_DIR", options.verify.data_dir, "Directory with train-*, validation-*")
      ->required();
  verify->add_option("--index_dir", options.verify.index_dir, "Check these index files too")
      ->type_name("DIR");
  AddNumber(verify, "--classes", options.verify.classes, "Labels are 1..CLASSES");
  AddThreads(verify, options.verify.threads);
}

void AddStats(CLI::App& app, DataToolOptions& options) {
  CLI::App* stats = AddCommand(app, options, DataToolCommand::kStats, "stats",
                               "Count images, classes and bytes, say how large images are, and "
                               "find those that are there more than once");
  stats->add_option("DATA_DIR", options.data_dir, "Directory with train-*, validation-*")
      ->required();
  stats->add_flag("--json", options.as_json, "As JSON, with every image that is there again");
  AddThreads(stats, options.threads);
}

void AddSplitCommand(CLI::App& app, DataToolOptions& options) {
  CLI::App* split = AddCommand(
      app, options, DataToolCommand::kSplit, "split",
      "Make a data set of another one's records: in another number of files, or with a validation "
      "part of some training images; the same command goes on where it was stopped");
  SplitSetOptions& values = options.split;
  split->add_option("FROM_DIR", values.from, "Directory with train-*, validation-*; only read")
      ->required();
  split->add_option("DATA_DIR", values.dir, "Directory of the new data set; made if need be")
      ->required();
  AddNumber(split, "--shards", values.shards, "Files train-*; 0: as many as FROM_DIR has");
  AddNumber(split, "--validation_shards", values.validation_shards,
            "Files validation-*; 0: as many as FROM_DIR has, or one for 100 images, at most 128");
  AddNumber(split, "--validation_images", values.validation_images,
            "Draw so many of the training images and make them validation-*");
  AddNumber(split, "--seed", values.seed, "Of the draw; the same seed, the same bytes");
  AddThreads(split, values.threads);
}

}  // namespace

void DescribeOptions(CLI::App& app, DataToolOptions& options) {
  app.set_version_flag("--version", DDLRUN_VERSION);
  app.footer(support::kReferenceLine);
  AddSynth(app, options);
  AddConvert(app, options);
  AddIndex(app, options);
  AddManifest(app, options);
  AddVerify(app, options);
  AddStats(app, options);
  AddSplitCommand(app, options);
  support::RefuseSlips(app);
}

}  // namespace trainer
