// SPDX-License-Identifier: Apache-2.0
//
// A small data set on disk and what a source makes of it.

#pragma once

#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/tfrecord_loader.h"

namespace trainer {

// What one sample looks like, and of which class it is.
struct Seen {
  std::int32_t label;
  std::uint8_t mirror;
  std::vector<std::uint8_t> pixels;
  bool operator==(const Seen&) const = default;
};

inline std::vector<Seen> Images(const HostBatch& batch) {
  std::vector<Seen> seen;
  const auto bytes = batch.pixels.size() / batch.labels.size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.valid); ++i) {
    const auto pixels = batch.pixels.subspan(i * bytes, bytes);
    seen.push_back({batch.labels[i], batch.mirror[i], {pixels.begin(), pixels.end()}});
  }
  return seen;
}

// A set of 11 training images with labels 1 to 11 in three files, and 5 validation images.
class RecordSourceTest : public ::testing::Test {
 protected:
  RecordSourceTest() {
    WriteRecords(dir_ / "train-00000-of-00003", Records(1, 4));
    WriteRecords(dir_ / "train-00001-of-00003", Records(5, 8));
    WriteRecords(dir_ / "train-00002-of-00003", Records(9, 11));
    WriteRecords(dir_ / "validation-00000-of-00001", Records(1, 5));
    options_.data_dir = dir_.path();
    options_.batch_size = 2;
    options_.image_size = 24;
    options_.classes = 11;
    options_.threads = 2;
  }

  static std::vector<std::string> Records(std::int64_t first, std::int64_t last) {
    std::vector<std::string> records;
    for (std::int64_t label = first; label <= last; ++label) {
      records.push_back(MakeImageRecord(label, static_cast<std::uint64_t>(label)));
    }
    return records;
  }

  // From the start, or after as many steps of the same kind.
  std::vector<Seen> Take(const TfRecordLoaderOptions& options, std::int64_t first_step, int steps) {
    return TakeFrom(options, Position{}.At(first_step, options.batch_size * options.world_size),
                    steps);
  }

  std::vector<Seen> TakeFrom(const TfRecordLoaderOptions& options, const Position& start,
                             int steps) {
    const auto source = MakeTfRecordLoader(options);
    if (start != Position{}) source->Seek(start);
    std::vector<Seen> all;
    HostBatch batch;
    for (int i = 0; i < steps && source->Next(batch); ++i) {
      EXPECT_EQ(batch.step, start.step + i);
      const auto images = Images(batch);
      all.insert(all.end(), images.begin(), images.end());
    }
    return all;
  }

  static std::vector<std::int32_t> Labels(const std::vector<Seen>& images) {
    std::vector<std::int32_t> labels;
    for (const Seen& image : images) labels.push_back(image.label);
    return labels;
  }

  TfRecordLoaderOptions Evaluation() {
    TfRecordLoaderOptions options = options_;
    options.split = Split::kValidation;
    options.training = false;
    return options;
  }

  // The refusal of the first step or of the source itself.
  std::string Rejection(const TfRecordLoaderOptions& options) {
    return DataErrorOf([&] { Take(options, 0, 6); });
  }

  TemporaryDirectory dir_;
  TfRecordLoaderOptions options_;
};

}  // namespace trainer
