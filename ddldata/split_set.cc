// SPDX-License-Identifier: Apache-2.0

#include "ddldata/split_set.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ddldata/convert_plan.h"
#include "ddldata/inspect.h"
#include "ddldata/shard_directory.h"
#include "support/number.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/philox.h"
#include "trainer/core/thread.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// One split of the set that is made.
struct SplitPart {
  Split split = Split::kTrain;
  const DataSet* from = nullptr;
  std::vector<std::uint32_t> records;  // of that, in order
  int shards = 0;

  std::size_t ShardBegin(int shard) const {
    return records.size() * static_cast<std::size_t>(shard) / static_cast<std::size_t>(shards);
  }
};

std::string OutOfRange(const std::string& option, const std::string& range, std::int64_t value) {
  return option + " must be " + range + ", not " + std::to_string(value);
}

std::vector<std::uint32_t> AllOf(const DataSet& set) {
  DDL_CHECK(set.records() <= std::numeric_limits<std::uint32_t>::max());
  std::vector<std::uint32_t> records(static_cast<std::size_t>(set.records()));
  std::iota(records.begin(), records.end(), 0U);
  return records;
}

// Names, sizes, record boundaries and data checksums of all files.
std::string DescribeSource(const std::string& prefix, const DataSet& set) {
  const std::vector<ConsistencyItem> items = set.items();
  Fingerprint fingerprint;
  for (std::size_t i = 0; i < items.size(); ++i) {
    fingerprint.Add(items[i].text);
    fingerprint.Add(std::uint64_t{set.checksums()[i].value_or(0)});
  }
  return "from " + prefix + "* " + std::to_string(set.records()) + " records, " +
         std::to_string(items.size()) + " files, list " + fingerprint.hex() + "\n";
}

RecordIdentity IdentityOf(std::span<const std::uint8_t> record) {
  const auto of_bytes = [](auto bytes) {
    return std::uint64_t{Crc32c(std::as_bytes(std::span(bytes)))} << 32U |
           (bytes.size() & 0xffffffffU);
  };
  try {
    const ImageExample example = ParseExample(record);
    return {of_bytes(std::string_view(example.encoded)), std::max<std::int64_t>(0, example.label)};
  } catch (const Error& error) {
    if (error.exit_code() != EX_DATAERR) throw;
    return {of_bytes(record)};
  }
}

class SplitWork {
 public:
  SplitWork(const SplitSetOptions& options, ConvertProgress& progress,
            const std::function<bool()>& stop_requested)
      : options_(options),
        progress_(progress),
        making_(options.dir, options.threads, stop_requested) {}

  SplitSetSummary Run();

 private:
  struct Task {
    const SplitPart* part;
    int shard;
  };

  void CheckOptions() const;
  std::optional<DataSet> Open(Split split) const;
  void PlanTrain(std::vector<std::uint32_t> records);
  void PlanValidation(const DataSet& from, std::vector<std::uint32_t> records, int default_shards);
  std::vector<RecordIdentity> IdentifyRecords();
  void PlanDraw();
  void Plan();
  std::string Describe() const;
  void BeginProgress(std::span<const std::size_t> missing);
  void WriteFile(const Task& task);

  const SplitSetOptions& options_;
  ConvertProgress& progress_;
  ShardMaking making_;
  std::optional<DataSet> train_;
  std::optional<DataSet> validation_;
  bool is_plain_draw_ = true;
  std::vector<SplitPart> parts_;
  std::vector<Task> tasks_;
  SplitSetSummary summary_;
};

void SplitWork::CheckOptions() const {
  RequireOption(options_.threads >= 1 && options_.threads <= kMaxThreads,
                OutOfRange("--threads", "1 to " + std::to_string(kMaxThreads), options_.threads));
  RequireOption(options_.validation_images >= 0,
                OutOfRange("--validation_images", "0 or more", options_.validation_images));
}

std::optional<DataSet> SplitWork::Open(Split split) const {
  const bool may_be_part = HasShardManifest(options_.from);
  const DataFiles files = ListDataFiles(options_.from, split, may_be_part);
  if (files.paths.empty() && files.problems.empty()) return std::nullopt;
  return std::make_optional<DataSet>(options_.from, "", split, options_.threads);
}

// How many files of `part` there are; 0: `by_default`, or one for each record where that is fewer.
void PlanShards(SplitPart& part, const std::string& option, int requested, int by_default) {
  const auto records = std::ssize(part.records);
  RequireOption(requested >= 0 && requested <= kMaxShardNumber,
                OutOfRange(option, "0 to " + std::to_string(kMaxShardNumber), requested));
  RequireOption(requested <= records,
                OutOfRange(option, "at most " + std::to_string(records), requested) +
                    ": a file needs an image");
  part.shards =
      requested > 0 ? requested : static_cast<int>(std::min<std::int64_t>(by_default, records));
}

void SplitWork::PlanTrain(std::vector<std::uint32_t> records) {
  SplitPart part{Split::kTrain, &*train_, std::move(records), 0};
  PlanShards(part, "--shards", options_.shards, static_cast<int>(train_->checksums().size()));
  summary_.train_images = std::ssize(part.records);
  parts_.push_back(std::move(part));
}

void SplitWork::PlanValidation(const DataSet& from, std::vector<std::uint32_t> records,
                               int default_shards) {
  SplitPart part{Split::kValidation, &from, std::move(records), 0};
  PlanShards(part, "--validation_shards", options_.validation_shards, default_shards);
  summary_.validation_images = std::ssize(part.records);
  parts_.push_back(std::move(part));
}

// Of all training records, which are read for that.  One that is no Example is compared as it is.
std::vector<RecordIdentity> SplitWork::IdentifyRecords() {
  constexpr std::int64_t kRun = 64;  // records per task
  std::vector<RecordIdentity> identities(static_cast<std::size_t>(train_->records()));
  std::atomic<std::int64_t> read = 0;
  ParallelFor(options_.threads, (std::ssize(identities) + kRun - 1) / kRun, [&](std::int64_t run) {
    making_.StopIfRequested();
    std::vector<std::uint8_t> buffer;
    const std::int64_t end = std::min((run + 1) * kRun, std::ssize(identities));
    for (std::int64_t i = run * kRun; i < end; ++i) {
      identities[static_cast<std::size_t>(i)] = IdentityOf(train_->Read(i, buffer));
    }
    progress_.Listed(read += end - run * kRun, "records compared");
  });
  return identities;
}

void SplitWork::PlanDraw() {
  RequireOption(!validation_, options_.from +
                                  " already has validation-* files: --validation_images "
                                  "makes some of train-* files alone");
  const std::int64_t drawn = options_.validation_images;
  RequireOption(
      drawn < train_->records(),
      OutOfRange("--validation_images",
                 "less than the " + std::to_string(train_->records()) + " training images", drawn));
  const std::vector<RecordIdentity> records = IdentifyRecords();
  std::vector<std::uint32_t> validation = DrawApart(records, drawn, options_.seed);
  is_plain_draw_ = validation == DrawRecords(train_->records(), drawn, options_.seed);
  const auto is_less = std::ssize(validation) < drawn;
  RequireOption(!validation.empty(),
                "--validation_images: no image can be drawn, since each class is to be left one: "
                "each has one image, or equal ones");
  if (is_less || !is_plain_draw_) {
    progress_.Note("equal images are drawn together, and each class is left one for training" +
                   (is_less ? ": " + support::Counted(std::ssize(validation), "image") +
                                  " instead of " + std::to_string(drawn)
                            : std::string()));
  }
  std::vector<std::uint32_t> train;
  std::ranges::set_difference(AllOf(*train_), validation, std::back_inserter(train));
  PlanTrain(std::move(train));
  const std::int64_t shards = (drawn + kImagesOfShard - 1) / kImagesOfShard;
  PlanValidation(*train_, std::move(validation),
                 static_cast<int>(std::min<std::int64_t>(shards, kMaxValidationShards)));
}

void SplitWork::Plan() {
  CheckOptions();
  train_ = Open(Split::kTrain);
  validation_ = Open(Split::kValidation);
  if (!train_ && !validation_) {
    throw Error(EX_DATAERR, "the data directory " + options_.from +
                                " has no file train-* or validation-*" +
                                PrintFindings(options_.from));
  }
  RequireOption(
      train_ || (options_.shards == 0 && options_.validation_images == 0),
      options_.from + " has no train-* files, which --shards and --validation_images are about");
  RequireOption(validation_ || options_.validation_images > 0 || options_.validation_shards == 0,
                options_.from +
                    " has no validation-* files: --validation_shards needs "
                    "--validation_images");
  if (options_.validation_images > 0) {
    PlanDraw();
    return;
  }
  if (train_) PlanTrain(AllOf(*train_));
  if (validation_) {
    PlanValidation(*validation_, AllOf(*validation_),
                   static_cast<int>(validation_->checksums().size()));
  }
}

std::string SplitWork::Describe() const {
  std::string text = "ddldata split 1\n";
  if (train_) text += DescribeSource(FilePrefix(Split::kTrain), *train_);
  if (validation_) text += DescribeSource(FilePrefix(Split::kValidation), *validation_);
  if (options_.validation_images > 0)
    text += "drawn with seed " + std::to_string(options_.seed) +
            (is_plain_draw_ ? "" : ", equal images together") + "\n";
  for (const SplitPart& part : parts_) {
    text += FilePrefix(part.split) + "* " + std::to_string(part.records.size()) + " records, " +
            std::to_string(part.shards) + " files\n";
  }
  return text;
}

void SplitWork::BeginProgress(std::span<const std::size_t> missing) {
  std::int64_t images = 0;
  std::uint64_t bytes = 0;
  for (const std::size_t number : missing) {
    const auto [part, shard] = tasks_[number];
    for (auto i = part->ShardBegin(shard); i < part->ShardBegin(shard + 1); ++i) {
      ++images;
      bytes += part->from->SizeOf(part->records[i]);
    }
  }
  progress_.Begin(images, bytes);
}

void SplitWork::WriteFile(const Task& task) {
  const SplitPart& part = *task.part;
  RecordWriter writer(
      (fs::path(options_.dir) / ShardName(part.split, task.shard, part.shards)).string());
  std::vector<std::uint8_t> buffer;
  for (auto i = part.ShardBegin(task.shard); i < part.ShardBegin(task.shard + 1); ++i) {
    making_.StopIfRequested();
    if (making_.has_failed()) return;
    writer.Append(part.from->Read(part.records[i], buffer));
    progress_.Add(buffer.size());
  }
  writer.Finish();
  writer.Commit();
}

SplitSetSummary SplitWork::Run() {
  Plan();
  std::vector<std::string> names;
  for (const SplitPart& part : parts_) {
    for (int shard = 0; shard < part.shards; ++shard) {
      tasks_.push_back({&part, shard});
      names.push_back(ShardName(part.split, shard, part.shards));
    }
  }
  ShardDirectory directory(options_.dir);
  const std::vector<std::size_t> missing = directory.MissingFiles(Describe(), names);
  const std::vector<ImageClass> classes = ReadLabels(options_.from);
  if (!classes.empty()) WriteLabels(options_.dir, classes);
  summary_.files = static_cast<int>(names.size());
  summary_.files_before = summary_.files - static_cast<int>(missing.size());
  BeginProgress(missing);
  making_.WriteFiles(missing, [&](std::size_t i) { WriteFile(tasks_[i]); });
  MakeShardManifest(options_.dir, false, options_.threads);
  return summary_;
}

}  // namespace

// Selection sampling (Knuth, The Art of Computer Programming, 3.4.2, algorithm S).
std::vector<std::uint32_t> DrawRecords(std::int64_t records, std::int64_t drawn,
                                       std::uint64_t seed) {
  Random random(seed, RandomPurpose::kArrange, 0);
  std::vector<std::uint32_t> chosen;
  for (std::int64_t i = 0; i < records && std::ssize(chosen) < drawn; ++i) {
    const std::int64_t left = drawn - std::ssize(chosen);
    if (random.Below(static_cast<std::uint32_t>(records - i)) < left) {
      chosen.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return chosen;
}

namespace {

// Records that must be drawn together, and of how many images each class is left.
class ApartDraw {
 public:
  ApartDraw(std::span<const RecordIdentity> records, std::int64_t wanted)
      : records_(records), is_drawn_(records.size()), wanted_(wanted) {
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      groups_[records[i].image].push_back(i);
      ++left_[records[i].label];
    }
  }

  // The records with this one's image, where they all fit and leave each class one.
  void Draw(std::uint32_t record) {
    if (is_drawn_[record]) return;
    const std::vector<std::uint32_t>& group = groups_.at(records_[record].image);
    if (std::ssize(group) > wanted_) return;
    std::map<std::int64_t, std::int64_t> of_label;
    for (const std::uint32_t one : group) ++of_label[records_[one].label];
    for (const auto& [label, count] : of_label) {
      if (label >= 0 && left_.at(label) <= count) return;
    }
    for (const auto& [label, count] : of_label) left_.at(label) -= count;
    for (const std::uint32_t one : group) is_drawn_[one] = true;
    wanted_ -= std::ssize(group);
  }

  std::vector<std::uint32_t> drawn() const {
    std::vector<std::uint32_t> drawn;
    for (std::uint32_t i = 0; i < is_drawn_.size(); ++i) {
      if (is_drawn_[i]) drawn.push_back(i);
    }
    return drawn;
  }

 private:
  std::span<const RecordIdentity> records_;
  std::vector<bool> is_drawn_;
  std::int64_t wanted_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> groups_;  // by image
  std::unordered_map<std::int64_t, std::int64_t> left_;                   // by label
};

}  // namespace

std::vector<std::uint32_t> DrawApart(std::span<const RecordIdentity> records, std::int64_t drawn,
                                     std::uint64_t seed) {
  ApartDraw draw(records, drawn);
  for (const std::uint32_t record : DrawRecords(std::ssize(records), drawn, seed)) {
    draw.Draw(record);
  }
  // In place of those that had to stay.
  std::vector<std::uint32_t> others(records.size());
  std::iota(others.begin(), others.end(), 0U);
  Random random(seed, RandomPurpose::kArrange, 1);
  for (std::size_t i = others.size(); i > 1; --i) {
    std::swap(others[i - 1], others[random.Below(static_cast<std::uint32_t>(i))]);
  }
  for (const std::uint32_t record : others) draw.Draw(record);
  return draw.drawn();
}

SplitSetSummary SplitDataSet(const SplitSetOptions& options, ConvertProgress& progress,
                             const std::function<bool()>& stop_requested) {
  return SplitWork(options, progress, stop_requested).Run();
}

}  // namespace trainer
