// SPDX-License-Identifier: Apache-2.0

#include "ddldata/synth.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "ddldata/image_generator.h"
#include "ddldata/inspect.h"
#include "ddldata/jpeg_encoder.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/philox.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/parallel_for.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxShards = 99999;  // five digits in the name
constexpr int kMinSize = 16;       // pixels
constexpr int kMaxSize = 8192;
constexpr std::uint64_t kValidationImages = std::uint64_t{1} << 40;  // their first number

// The images of a split and how they lie in files.
struct SplitSpec {
  Split split;
  std::int64_t images;
  int shards;
  std::uint64_t first_number;  // of the random numbers
};

void Require(bool condition, const std::string& message) {
  if (!condition) throw Error(EX_USAGE, message);
}

void CheckOptions(const SynthOptions& options) {
  Require(options.classes >= 1 && options.classes <= kMaxSyntheticClasses,
          "--classes must be 1 to " + std::to_string(kMaxSyntheticClasses) + ", not " +
              std::to_string(options.classes));
  Require(options.min_size >= kMinSize && options.min_size <= options.max_size &&
              options.max_size <= kMaxSize,
          "--size must be MIN-MAX with " + std::to_string(kMinSize) +
              " <= MIN <= MAX <= " + std::to_string(kMaxSize) + ", not " +
              std::to_string(options.min_size) + "-" + std::to_string(options.max_size));
  Require(options.images >= 1 && options.shards >= 1 && options.shards <= kMaxShards &&
              options.images >= options.shards,
          "--images must be at least --shards, and both at least 1: a file needs an image");
  Require(options.validation_images == 0 ||
              (options.validation_images >= options.validation_shards &&
               options.validation_shards >= 1 && options.validation_shards <= kMaxShards),
          "--validation_images must be 0 or at least --validation_shards: a file needs an image");
  Require(options.threads >= 1, "--threads must be at least 1");
}

std::string ShardName(const SplitSpec& plan, int shard) {
  std::array<char, 32> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%05d-of-%05d", shard, plan.shards);
  return FilePrefix(plan.split) + numbers.data();
}

std::string MakeRecord(const SynthOptions& options, const SplitSpec& plan, std::int64_t image) {
  const int class_index = static_cast<int>(image % options.classes);
  const auto number = plan.first_number + static_cast<std::uint64_t>(image);
  Random random(options.seed, RandomPurpose::kGenerate, number);
  const auto draw_extent = [&] {
    const auto choices = static_cast<std::uint32_t>(options.max_size - options.min_size + 1);
    return options.min_size + static_cast<int>(random.Below(choices));
  };
  const int width = draw_extent();
  const int height = draw_extent();
  const int quality = 85 + static_cast<int>(random.Below(11));
  const Picture picture = Render(class_index, {width, height}, random);
  ImageExample example;
  example.encoded = EncodeJpeg(picture.pixels, picture.size, {.quality = quality});
  example.label = class_index + 1;
  example.label_text = DescribeSyntheticClass(class_index);
  example.filename = FilePrefix(plan.split) + std::to_string(image) + ".JPEG";
  example.size = picture.size;
  example.boxes = {picture.box};
  return SerializeExample(example);
}

// One complete file, still under its temporary name.
std::unique_ptr<RecordWriter> WriteShard(const SynthOptions& options, const SplitSpec& plan,
                                         int shard) {
  const std::int64_t begin = plan.images * shard / plan.shards;
  const std::int64_t end = plan.images * (shard + 1) / plan.shards;
  std::vector<std::string> records(static_cast<std::size_t>(end - begin));
  ParallelFor(options.threads, end - begin, [&](std::int64_t i) {
    records[static_cast<std::size_t>(i)] = MakeRecord(options, plan, begin + i);
  });
  auto writer =
      std::make_unique<RecordWriter>((fs::path(options.dir) / ShardName(plan, shard)).string());
  for (const std::string& record : records) {
    writer->Append({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
  }
  writer->Finish();
  return writer;
}

std::vector<fs::path> ExistingDataFiles(const std::string& dir) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(FilePrefix(Split::kTrain)) ||
        name.starts_with(FilePrefix(Split::kValidation))) {
      found.push_back(entry->path());
    }
  }
  if (error) throw OsError("cannot read the directory " + dir, error.value());
  return found;
}

}  // namespace

void MakeDataSet(const SynthOptions& options) {
  CheckOptions(options);
  MakeDirectories(options.dir);
  const std::vector<fs::path> existing = ExistingDataFiles(options.dir);
  Require(existing.empty() || options.force,
          options.dir + " already has data files (" + std::to_string(existing.size()) +
              ", one is " + (existing.empty() ? "" : existing.front().filename().string()) +
              "); --force replaces all of them");

  std::vector<SplitSpec> plans = {{Split::kTrain, options.images, options.shards, 0}};
  if (options.validation_images > 0) {
    plans.push_back({Split::kValidation, options.validation_images, options.validation_shards,
                     kValidationImages});
  }
  std::vector<std::unique_ptr<RecordWriter>> files;
  for (const SplitSpec& plan : plans) {
    for (int shard = 0; shard < plan.shards; ++shard) {
      files.push_back(WriteShard(options, plan, shard));
    }
  }
  for (const fs::path& path : existing) {
    std::error_code error;
    if (!fs::remove(path, error) && error) {
      throw OsError("cannot remove " + path.string(), error.value());
    }
  }
  for (const auto& file : files) file->Commit();
  MakeShardManifest(options.dir, false, options.threads);
}

}  // namespace trainer
