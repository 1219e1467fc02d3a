// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tfrecord_loader.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/data/data_loader.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/files/read_ahead.h"
#include "trainer/data/prefetch.h"
#include "trainer/data/shard_sampler.h"

namespace trainer {
namespace {

// A record that could not be used, and why.
struct BadRecord {
  std::int64_t record;
  std::string message;
};

// What the loading threads know of bad records, so that none is read again and again.
class KnownBad {
 public:
  std::optional<std::string> Find(std::int64_t record) const {
    const std::lock_guard lock(mutex_);
    const auto found = messages_.find(record);
    return found == messages_.end() ? std::nullopt : std::optional(found->second);
  }
  void Add(std::int64_t record, const std::string& message) {
    const std::lock_guard lock(mutex_);
    messages_.emplace(record, message);
  }
  std::int64_t size() const {
    const std::lock_guard lock(mutex_);
    return std::ssize(messages_);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> messages_;
};

// One slot of the ring.  Items are written by different threads, each its own.
struct Batch {
  BatchMemory memory;
  std::vector<std::uint8_t> present;        // by item: 1 if there is an image
  std::vector<std::vector<BadRecord>> bad;  // by item
};

class TfRecordLoader : public DataLoader {
 public:
  explicit TfRecordLoader(const TfRecordLoaderOptions& options);

  std::int64_t samples() const override { return data_.records(); }
  std::vector<ConsistencyItem> items() const override { return data_.items(); }
  std::string note() const override { return data_.note(); }
  ScanCost scan_cost() const override { return data_.scan_cost(); }
  std::optional<RecordCacheUse> record_cache() const override { return data_.record_cache(); }
  std::optional<std::int64_t> SampleHighestLabel() const override;
  void Seek(const Position& position) override {
    prefetcher_.Seek(position.step, [&] {
      read_ahead_.Seek(position.step * options_.batch_size, [&] { start_ = position; });
    });
  }
  bool Next(HostBatch& batch) override;

 private:
  std::size_t ImageBytes() const;
  std::vector<Batch> MakeRing() const;
  std::int64_t Steps() const;
  ReadAhead::Storage Records() const;
  Prefetcher::Options RingOptions() const;
  BatchRange RangeOf(std::int64_t step) const;
  std::optional<std::int64_t> RecordOfPlace(std::int64_t place) const;
  void Make(std::int64_t step, int slot, std::int64_t item, int thread);
  void Load(std::int64_t sample, const ReadAhead::Taken& taken, Batch& batch, std::size_t item,
            SampleLoader& loader);
  void ReportBadRecords(const Batch& batch);
  void RejectNoImage(const Batch& batch) const;
  std::int64_t MoveImagesToTheFront(Batch& batch) const;

  const TfRecordLoaderOptions options_;
  const GlobalBatch global_batch_;
  const DataSet data_;
  const ShardSampler sampler_;
  std::vector<std::unique_ptr<SampleLoader>> loaders_;  // by thread
  std::vector<Batch> ring_;
  Position start_;                      // last sought; written while nothing is made
  std::set<std::int64_t> bad_records_;  // that Next has met
  KnownBad known_bad_;
  ReadAhead read_ahead_;   // numbers the places of all steps: step * batch_size + place
  Prefetcher prefetcher_;  // last: its threads use the others
};

TfRecordLoader::TfRecordLoader(const TfRecordLoaderOptions& options)
    : options_(options),
      global_batch_{options.batch_size, options.world_size,
                    options.training ? options.accumulate : 1,
                    options.training ? options.short_ranks : 0},
      data_(options.data_dir, options.data_idx_dir, options.split, options.threads,
            {options.rank, options.world_size}, {.dir = options.scan_cache_dir},
            options.record_cache),
      sampler_(data_.records(), options.seed, options.training && options.shuffle),
      loaders_(static_cast<std::size_t>(options.threads)),
      ring_(MakeRing()),
      read_ahead_(ReadAheadFor(options.threads, Steps() * options.batch_size), Records()),
      prefetcher_(RingOptions(), [this](std::int64_t step, int slot, std::int64_t item,
                                        int thread) { Make(step, slot, item, thread); }) {}

std::optional<std::int64_t> TfRecordLoader::SampleHighestLabel() const {
  constexpr std::int64_t kSampled = 64;  // a second on a slow file system
  const std::int64_t count = std::min(kSampled, data_.records());
  std::optional<std::int64_t> highest;
  std::vector<std::uint8_t> buffer;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t record = count == 1 ? 0 : i * (data_.records() - 1) / (count - 1);
    try {
      const std::int64_t label = ParseExample(data_.ReadFromFile(record, buffer)).label;
      highest = std::max(highest.value_or(label), label);
    } catch (const Error& error) {
      if (error.exit_code() != EX_DATAERR) throw;  // a bad record is told when its turn comes
    }
  }
  return highest;
}

std::size_t TfRecordLoader::ImageBytes() const {
  const auto size = static_cast<std::size_t>(options_.image_size);
  return size * size * 3;
}

std::vector<Batch> TfRecordLoader::MakeRing() const {
  const auto items = static_cast<std::size_t>(options_.batch_size);
  std::vector<Batch> ring;
  for (int slot = 0; slot <= std::max(options_.prefetch, 1); ++slot) {
    ring.push_back({.memory = BatchMemory(items, ImageBytes(), options_.allocate),
                    .present = std::vector<std::uint8_t>(items),
                    .bad = std::vector<std::vector<BadRecord>>(items)});
  }
  return ring;
}

// That are made: all of an evaluation, or more than any training has.
std::int64_t TfRecordLoader::Steps() const {
  return options_.training ? std::numeric_limits<std::int64_t>::max() / 2 / options_.batch_size
                           : EvaluationSteps(global_batch_, data_.records());
}

ReadAhead::Storage TfRecordLoader::Records() const {
  return {
      .size =
          [this](std::int64_t place) {
            const std::optional<std::int64_t> record = RecordOfPlace(place);
            return record ? data_.SizeOf(*record) : 0;
          },
      .read = [this](std::int64_t place,
                     std::span<std::uint8_t> bytes) { data_.Fetch(*RecordOfPlace(place), bytes); }};
}

Prefetcher::Options TfRecordLoader::RingOptions() const {
  return {.threads = options_.threads,
          .slots = static_cast<int>(ring_.size()),
          .items = options_.batch_size,
          .end = Steps(),
          .spans = options_.spans};
}

BatchRange TfRecordLoader::RangeOf(std::int64_t step) const {
  if (!options_.training) {
    return EvaluationRange(step, global_batch_, options_.rank, data_.records());
  }
  return TrainingRange(FirstOfRound(start_, step, global_batch_, options_.rank),
                       options_.batch_size, options_.rank);
}

// None is in places of an evaluation that are behind its last image.
std::optional<std::int64_t> TfRecordLoader::RecordOfPlace(std::int64_t place) const {
  const BatchRange range = RangeOf(place / options_.batch_size);
  const std::int64_t item = place % options_.batch_size;
  if (item >= range.valid) return std::nullopt;
  return sampler_.RecordOf(range.first_sample + item);
}

void TfRecordLoader::Make(std::int64_t step, int slot, std::int64_t item, int thread) {
  const ReadAhead::Taken taken = read_ahead_.Take(step * options_.batch_size + item);
  auto& loader = loaders_[static_cast<std::size_t>(thread)];
  if (!loader) {
    loader = std::make_unique<SampleLoader>(
        data_, SampleOptions{.image_size = options_.image_size,
                             .classes = options_.classes,
                             .label_offset = options_.label_offset,
                             .augment = options_.training && options_.augment == Augment::kTrain,
                             .augmentation = options_.augmentation});
  }
  Batch& batch = ring_[static_cast<std::size_t>(slot)];
  const auto place = static_cast<std::size_t>(item);
  batch.bad[place].clear();
  batch.present[place] = 0;
  const BatchRange range = RangeOf(step);
  if (item < range.valid) Load(range.first_sample + item, taken, batch, place, *loader);
}

// What has been taken is the sample's record; one that stands in for it is read here.
void TfRecordLoader::Load(std::int64_t sample, const ReadAhead::Taken& taken, Batch& batch,
                          std::size_t item, SampleLoader& loader) {
  const auto pixels = batch.memory.pixels().subspan(item * ImageBytes(), ImageBytes());
  const Random random(options_.seed, RandomPurpose::kAugment, static_cast<std::uint64_t>(sample));
  std::set<std::int64_t> tried;
  for (std::int64_t substitute = sample;; ++substitute) {
    const std::int64_t record = sampler_.RecordOf(substitute);
    std::optional<std::string> problem = known_bad_.Find(record);
    if (!problem) {
      try {
        const Sample loaded = substitute == sample
                                  ? loader.LoadFetched(record, taken.bytes(), random, pixels)
                                  : loader.Load(record, random, pixels);
        batch.memory.labels()[item] = loaded.label;
        batch.memory.mirror()[item] = loaded.mirror ? 1 : 0;
        batch.present[item] = 1;
        return;
      } catch (const Error& error) {
        if (error.exit_code() != EX_DATAERR) throw;
        if (options_.bad_records == BadRecords::kStop) {
          throw Error(EX_DATAERR,
                      std::string(error.what()) + "; --bad_records=skip leaves such records out");
        }
        problem = error.what();
        known_bad_.Add(record, *problem);
      }
    }
    if (tried.insert(record).second) batch.bad[item].push_back({record, std::move(*problem)});
    // Past the cap, or where no record is good, Next throws.
    const bool give_up =
        std::ssize(tried) > options_.max_bad_records || known_bad_.size() == data_.records();
    if (!options_.training || give_up) return;
  }
}

bool TfRecordLoader::Next(HostBatch& batch) {
  const int slot = prefetcher_.Next();
  if (slot < 0) return false;
  Batch& made = ring_[static_cast<std::size_t>(slot)];
  ReportBadRecords(made);
  if (options_.training) RejectNoImage(made);
  batch.valid = MoveImagesToTheFront(made);
  batch.pixels = made.memory.pixels();
  batch.mirror = made.memory.mirror();
  batch.labels = made.memory.labels();
  batch.step = prefetcher_.step();
  batch.sample = options_.training ? RangeOf(batch.step).first_sample : 0;
  return true;
}

void TfRecordLoader::ReportBadRecords(const Batch& batch) {
  for (const auto& of_item : batch.bad) {
    for (const BadRecord& bad : of_item) {
      if (!bad_records_.insert(bad.record).second) continue;
      if (std::ssize(bad_records_) > options_.max_bad_records) {
        throw Error(EX_DATAERR, bad.message + "; this is one bad record more than the " +
                                    std::to_string(options_.max_bad_records) +
                                    " that may be skipped");
      }
      if (options_.on_bad_record) options_.on_bad_record(bad.message);
    }
  }
}

// A training batch without one of its images: there is no good record.
void TfRecordLoader::RejectNoImage(const Batch& batch) const {
  if (std::ranges::find(batch.present, 0) == batch.present.end()) return;
  constexpr std::size_t kNamed = 3;
  std::set<std::string> names;
  for (const auto& of_item : batch.bad) {
    for (const BadRecord& bad : of_item) {
      if (names.size() < kNamed) names.insert(bad.message);
    }
  }
  std::string message = options_.data_dir + ": none of the " + std::to_string(data_.records()) +
                        " records of " + FilePrefix(options_.split) + "* can be used";
  for (const std::string& name : names) message += "; " + name;
  throw Error(EX_DATAERR, message);
}

std::int64_t TfRecordLoader::MoveImagesToTheFront(Batch& batch) const {
  const auto pixels = batch.memory.pixels();
  const auto mirror = batch.memory.mirror();
  const auto labels = batch.memory.labels();
  std::size_t valid = 0;
  for (std::size_t item = 0; item < batch.present.size(); ++item) {
    if (batch.present[item] == 0) continue;
    if (valid != item) {
      std::ranges::copy(pixels.subspan(item * ImageBytes(), ImageBytes()),
                        pixels.subspan(valid * ImageBytes(), ImageBytes()).begin());
      mirror[valid] = mirror[item];
      labels[valid] = labels[item];
    }
    ++valid;
  }
  // Places without an image must hold valid values all the same.
  std::ranges::fill(pixels.subspan(valid * ImageBytes()), std::uint8_t{0});
  std::ranges::fill(mirror.subspan(valid), std::uint8_t{0});
  std::ranges::fill(labels.subspan(valid), 0);
  return static_cast<std::int64_t>(valid);
}

}  // namespace

std::unique_ptr<DataLoader> MakeTfRecordLoader(const TfRecordLoaderOptions& options) {
  DDL_CHECK(options.batch_size > 0 && options.image_size > 0 && options.classes > 0);
  DDL_CHECK(options.rank >= 0 && options.rank < options.world_size && options.threads > 0);
  return std::make_unique<TfRecordLoader>(options);
}

SampleLoader::SampleLoader(const DataSet& data, const SampleOptions& options)
    : data_(data), options_(options) {}

Sample SampleLoader::Load(std::int64_t record, Random random, std::span<std::uint8_t> pixels) {
  return LoadChecked(record, data_.Read(record, record_), random, pixels);
}

Sample SampleLoader::LoadFetched(std::int64_t record, std::span<const std::uint8_t> bytes,
                                 Random random, std::span<std::uint8_t> pixels) {
  return LoadChecked(record, data_.Check(record, bytes), random, pixels);
}

Sample SampleLoader::LoadChecked(std::int64_t record, std::span<const std::uint8_t> data,
                                 Random& random, std::span<std::uint8_t> pixels) {
  try {
    return LoadUnnamed(data, random, pixels);
  } catch (const Error& error) {
    throw Error(error.exit_code(), data_.Describe(record, error.what()));
  }
}

Sample SampleLoader::LoadUnnamed(std::span<const std::uint8_t> data, Random& random,
                                 std::span<std::uint8_t> pixels) {
  const ImageExample example = ParseExample(data);
  Sample sample;
  sample.label = ClassOfLabel(example.label, options_.classes, options_.label_offset);
  const ImageSize size = image_.ReadHeader(
      {reinterpret_cast<const std::uint8_t*>(example.encoded.data()), example.encoded.size()});
  const View view = options_.augment
                        ? TrainingView(size, example.boxes, RulesOf(options_.augmentation), random)
                        : CentreView(size, options_.image_size);
  image_.Load(view, options_.image_size, pixels);
  sample.mirror = view.mirror;
  return sample;
}

constexpr char kFromZero[] =
    "; labels count from 1, as build_imagenet_data.py writes them, those of TF-slim and TFDS from "
    "0: make such a set anew of its images, by ddldata convert";

std::int32_t ClassOfLabel(std::int64_t label, int classes, int label_offset) {
  const std::int64_t last = std::int64_t{label_offset} + classes - 1;
  if (label < label_offset || label > last) {
    const bool counts_from_0 = label == 0 && label_offset == 1;
    throw Error(EX_DATAERR, "the label " + std::to_string(label) + " is out of range: allowed is " +
                                std::to_string(label_offset) + " to " + std::to_string(last) +
                                (counts_from_0 ? kFromZero : ""));
  }
  return static_cast<std::int32_t>(label - label_offset);
}

}  // namespace trainer
