// SPDX-License-Identifier: Apache-2.0

#include "ddldata/convert.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>

#include "ddldata/bounding_boxes.h"
#include "ddldata/convert_plan.h"
#include "ddldata/exif.h"
#include "ddldata/image_sources.h"
#include "ddldata/inspect.h"
#include "ddldata/label_list.h"
#include "ddldata/shard_directory.h"
#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/thread.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/tfrecord.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

void CheckConvertOptions(const ConvertOptions& options) {
  RequireOption(!options.train.sources.empty() || !options.validation.sources.empty(),
                "there is nothing to convert: give --train=PATH, --validation=PATH or both");
  RequireOption(options.train.labels.empty() || !options.train.sources.empty(),
                "--train_labels needs --train=PATH");
  RequireOption(options.validation.labels.empty() || !options.validation.sources.empty(),
                "--validation_labels needs --validation=PATH");
  RequireOption(options.boxes.empty() || !options.train.sources.empty(),
                "--boxes needs --train=PATH");
  constexpr int kMaxSide = 65500;
  RequireOption(options.image.shorter_side >= 0 && options.image.shorter_side <= kMaxSide,
                "--shorter_side must be 0 (as it is) to " + std::to_string(kMaxSide) + ", not " +
                    std::to_string(options.image.shorter_side));
  RequireOption(options.image.quality >= 1 && options.image.quality <= 100,
                "--quality must be 1 to 100, not " + std::to_string(options.image.quality));
  RequireOption(options.threads >= 1 && options.threads <= kMaxThreads,
                "--threads must be 1 to " + std::to_string(kMaxThreads) + ", not " +
                    std::to_string(options.threads));
}

std::string TextOf(ImageSize size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

std::vector<ImageClass> ListOf(const std::string& path) {
  return path.empty() ? std::vector<ImageClass>() : ReadClassList(path);
}

// Images of one kind that are met while they are stored.  Threads: any number.
class Finds {
 public:
  void Add(const std::string& image) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (first_.empty() || image < first_) first_ = image;
  }
  // Once all are met: how many, and the first of them by name.
  std::int64_t count() const { return count_; }
  const std::string& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::int64_t count_ = 0;
  std::string first_;
};

class Conversion {
 public:
  Conversion(const ConvertOptions& options, ConvertProgress& progress,
             const std::function<bool()>& stop_requested)
      : options_(options),
        progress_(progress),
        making_(options.dir, options.threads, stop_requested) {}

  ConvertSummary Run();

 private:
  // One file that is to be written.
  struct Task {
    std::size_t split;  // in orders_
    int shard;
  };

  ImageListing List(const ConvertedSplit& split, const std::vector<ImageClass>& class_numbers);
  void Plan();
  void NoteEmptyClasses() const;
  void NoteSourceOfBoth() const;
  void CheckDirectories() const;
  void NoteOrderOfNumbers() const;
  void NoteClasses() const;
  void RequireClasses() const;
  void PlanTrainBoxes();
  void BeginProgress(std::span<const std::size_t> missing);
  void WriteFile(const Task& task);
  std::string MakeRecord(std::size_t split, const PlannedImage& place,
                         std::span<const std::uint8_t> file, ImageStore& store);
  void CountRecords();
  void NoteFinds();

  const ConvertOptions& options_;
  ConvertProgress& progress_;
  ShardMaking making_;
  std::vector<ImageListing> listings_;
  std::vector<ImageReader> readers_;  // by listing
  std::vector<ImageClass> classes_;
  BoxList boxes_;                   // of the training images
  std::vector<SplitOrder> orders_;  // by listing
  std::vector<Task> tasks_;
  ConvertSummary summary_;
  Finds turned_;        // images with an orientation
  Finds other_aspect_;  // images whose annotation is of another form
};

ImageListing Conversion::List(const ConvertedSplit& split,
                              const std::vector<ImageClass>& class_numbers) {
  if (split.sources.empty()) return {};
  std::optional<ImageLabels> labels;
  if (!split.labels.empty()) {
    labels.emplace(ReadWholeFile(split.labels, kMaxLabelListBytes), split.labels, class_numbers);
  }
  ImageListing listing =
      ListImages(split.sources, labels ? &*labels : nullptr, [&](std::int64_t images) {
        making_.StopIfRequested();
        progress_.Listed(images);
      });
  if (listing.others > 0) {
    progress_.Note(support::Counted(listing.others, "file") +
                   " passed over that by their names are no images; one is " + listing.one_other);
  }
  return listing;
}

// Of the images that tell the classes; a list of classes tells all of them.
void Conversion::NoteEmptyClasses() const {
  const bool has_train = !options_.train.sources.empty();
  const ConvertedSplit& split = has_train ? options_.train : options_.validation;
  const std::vector<std::string>& empty = listings_[has_train ? 0 : 1].empty_classes;
  if (empty.empty() || !options_.class_list.empty() || !split.labels.empty()) return;
  const bool is_one = empty.size() == 1;
  progress_.Note(empty.front() +
                 (is_one ? " has no images and is no class"
                         : " and " + std::to_string(empty.size() - 1) +
                               " more have no images and are no classes") +
                 ", unless --class_list names " + (is_one ? "it" : "them"));
}

// Of a directory or tar that both splits have.
void Conversion::NoteSourceOfBoth() const {
  for (const ImageContainer& one : listings_[0].containers) {
    for (const ImageContainer& other : listings_[1].containers) {
      if (one.device_and_inode != other.device_and_inode) continue;
      progress_.Note(other.path +
                     " is among the training and the validation images: the accuracy will be that "
                     "on images that were trained on");
      return;
    }
  }
}

// A list of classes, or of labels, says what is meant.
void Conversion::CheckDirectories() const {
  if (!options_.class_list.empty() || !options_.train.labels.empty()) return;
  const std::string problem = DescribeOneClass(listings_[0]);
  if (!problem.empty()) throw Error(EX_DATAERR, problem);
  const std::string note = DescribeNestedDirectories(listings_[0]);
  if (!note.empty()) progress_.Note(note);
}

// A list of classes gives the order that is meant; WebDataset's numbers are in order.
void Conversion::NoteOrderOfNumbers() const {
  const bool is_numbered = listings_[0].is_numbered || listings_[1].is_numbered;
  if (is_numbered || !options_.class_list.empty()) return;
  const std::string note = DescribeOrderOfNumbers(classes_);
  if (!note.empty()) progress_.Note(note);
}

void Conversion::NoteClasses() const {
  for (const ImageListing& listing : listings_) {
    if (!listing.note.empty()) progress_.Note(listing.note);
  }
  if (!options_.class_list.empty()) {
    const std::string unused = DescribeUnusedClasses(listings_[0], listings_[1], classes_);
    if (!unused.empty()) progress_.Note(unused);
    return;
  }
  for (const std::string& note :
       {DescribeNumbersFromOne(listings_[0], listings_[1]), DescribeAlikeClasses(classes_)}) {
    if (!note.empty()) progress_.Note(note);
  }
}

// Labels are those of the training, whose classes the validation images need not all have.
void Conversion::RequireClasses() const {
  RequireOption(
      !options_.train.sources.empty() || !options_.class_list.empty() || listings_[1].is_numbered,
      "--validation without --train needs the classes of the training in the order of "
      "their labels: give --class_list=TRAIN_DATA_DIR/labels.txt");
}

void Conversion::PlanTrainBoxes() {
  if (options_.boxes.empty()) return;
  boxes_ = ReadBoxes(options_.boxes, [&](std::int64_t annotations) {
    making_.StopIfRequested();
    progress_.Listed(annotations, "annotations read");
  });
  SplitOrder& train = orders_.front();
  train.boxes = PlanBoxes(listings_.front(), boxes_);
  summary_.images_with_boxes = train.ImagesWithBoxes();
  if (boxes_.without_area() > 0) {
    progress_.Note("bounding boxes without area in " + options_.boxes +
                   ", which are left out: " + std::to_string(boxes_.without_area()));
  }
  if (summary_.images_with_boxes > 0) return;
  std::string what = "no training image has a bounding box in " + options_.boxes;
  if (boxes_.images() > 0) {
    what += ", which has those of " + support::Counted(boxes_.images(), "other image") +
            ", one by the name " + boxes_.first_name();
  }
  progress_.Note(what);
}

void Conversion::Plan() {
  const std::vector<ImageClass> class_list = ListOf(options_.class_list);
  const std::vector<ImageClass> class_numbers = ListOf(options_.class_numbers);
  listings_.push_back(List(options_.train, class_numbers));
  listings_.push_back(List(options_.validation, class_numbers));
  RequireClasses();
  NoteEmptyClasses();
  NoteSourceOfBoth();
  CheckDirectories();
  classes_ = NumberClasses(listings_[0], listings_[1], class_list);
  summary_.classes = std::ssize(classes_);
  NoteOrderOfNumbers();
  NoteClasses();
  for (const ImageListing& listing : listings_) readers_.emplace_back(listing);
  orders_.push_back(
      PlanSplit(Split::kTrain, listings_[0], classes_, options_.seed, options_.train.shards));
  orders_.push_back(PlanSplit(Split::kValidation, listings_[1], classes_, options_.seed,
                              options_.validation.shards));
  PlanTrainBoxes();
  for (std::size_t split = 0; split < orders_.size(); ++split) {
    for (int shard = 0; shard < orders_[split].shards; ++shard) tasks_.push_back({split, shard});
  }
}

void Conversion::BeginProgress(std::span<const std::size_t> missing) {
  std::int64_t images = 0;
  std::uint64_t bytes = 0;
  for (const std::size_t number : missing) {
    const Task& task = tasks_[number];
    const SplitOrder& order = orders_[task.split];
    for (auto i = order.ShardBegin(task.shard); i < order.ShardBegin(task.shard + 1); ++i) {
      ++images;
      const PlannedImage& place = order.order[static_cast<std::size_t>(i)];
      bytes += listings_[task.split].images[place.image].range.size;
    }
  }
  progress_.Begin(images, bytes);
}

std::string Conversion::MakeRecord(std::size_t split, const PlannedImage& place,
                                   std::span<const std::uint8_t> file, ImageStore& store) {
  StoredImage stored = store.Store(file);
  const InputImage& image = listings_[split].images[place.image];
  if (ExifOrientation(file) != 1) turned_.Add(readers_[split].Describe(image));
  const ImageClass& of_image = classes_[static_cast<std::size_t>(place.label) - 1];
  ImageExample example;
  example.encoded = std::move(stored.encoded);
  example.label = place.label;
  example.synset = of_image.name;
  example.label_text = of_image.text;
  example.filename = BaseName(image.path);
  example.size = stored.size;
  const auto boxes = orders_[split].BoxesOf(place);
  example.boxes.assign(boxes.begin(), boxes.end());
  const auto annotated = boxes.empty() ? std::nullopt : boxes_.SizeOf(image.path);
  if (annotated && HasOtherAspect(*annotated, stored.size_before)) {
    other_aspect_.Add(readers_[split].Describe(image) + " has " + TextOf(stored.size_before) +
                      " pixels, its annotation is of " + TextOf(*annotated));
  }
  return SerializeExample(example);
}

void Conversion::WriteFile(const Task& task) {
  const SplitOrder& order = orders_[task.split];
  const ImageListing& listing = listings_[task.split];
  const ImageReader& reader = readers_[task.split];
  const std::string path = (fs::path(options_.dir) / order.ShardName(task.shard)).string();
  RecordWriter writer(path);
  ImageStore store(options_.image);
  std::vector<std::uint8_t> file;
  bool has_record = false;
  for (auto i = order.ShardBegin(task.shard); i < order.ShardBegin(task.shard + 1); ++i) {
    making_.StopIfRequested();
    if (making_.has_failed()) return;
    const PlannedImage& place = order.order[static_cast<std::size_t>(i)];
    const InputImage& image = listing.images[place.image];
    reader.Read(image, file);
    try {
      const std::string record = MakeRecord(task.split, place, file, store);
      writer.Append({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
      has_record = true;
    } catch (const Error& error) {
      if (error.exit_code() != EX_DATAERR) throw;
      const std::string what = reader.Describe(image) + ": " + error.what();
      if (options_.bad_images == BadRecords::kStop) {
        throw Error(EX_DATAERR, what + "; --bad_images=skip leaves such images out");
      }
      progress_.Note("left out: " + what);
    }
    progress_.Add(image.range.size);
  }
  if (!has_record)
    throw Error(EX_DATAERR, "no image of " + path + " can be used: make fewer files");
  writer.Finish();
  writer.Commit();
}

// In the files, also those from before, which may lack images that were left out.
void Conversion::CountRecords() {
  const auto manifest = ReadShardManifest(options_.dir);
  for (const ShardSummary& shard : manifest.value()) {
    const bool is_train = shard.name.starts_with(FilePrefix(Split::kTrain));
    (is_train ? summary_.train_images : summary_.validation_images) +=
        static_cast<std::int64_t>(shard.records);
  }
  summary_.left_out = std::ssize(listings_[0].images) + std::ssize(listings_[1].images) -
                      summary_.train_images - summary_.validation_images;
}

// Of the images of the files that this start has made.
void Conversion::NoteFinds() {
  if (turned_.count() > 0) {
    progress_.Note(
        "images with an EXIF orientation, which is not applied, so that they are used as "
        "they are stored, turned or mirrored: " +
        std::to_string(turned_.count()) + "; one is " + turned_.first() +
        " (mogrify -auto-orient turns images)");
  }
  if (other_aspect_.count() > 0) {
    progress_.Note(
        "bounding boxes that were drawn on an image of another form, as on a turned one, "
        "and are most likely in the wrong places: of " +
        support::Counted(other_aspect_.count(), "image") + "; " + other_aspect_.first());
  }
}

ConvertSummary Conversion::Run() {
  CheckConvertOptions(options_);
  Plan();
  std::vector<std::string> names;
  for (const Task& task : tasks_) names.push_back(orders_[task.split].ShardName(task.shard));
  ShardDirectory directory(options_.dir);
  const std::vector<std::size_t> missing = directory.MissingFiles(
      DescribeConversion(options_.seed, options_.image, classes_, orders_, listings_), names);
  summary_.files = static_cast<int>(names.size());
  summary_.files_before = summary_.files - static_cast<int>(missing.size());
  WriteLabels(options_.dir, classes_);
  BeginProgress(missing);
  making_.WriteFiles(missing, [&](std::size_t i) { WriteFile(tasks_[i]); });
  NoteFinds();
  MakeShardManifest(options_.dir, false, options_.threads);
  CountRecords();
  return summary_;
}

}  // namespace

ConvertSummary ConvertImages(const ConvertOptions& options, ConvertProgress& progress,
                             const std::function<bool()>& stop_requested) {
  return Conversion(options, progress, stop_requested).Run();
}

}  // namespace trainer
