// SPDX-License-Identifier: Apache-2.0
//
// What the tests of trainer/data share: small images, record files.

#pragma once

#include <span>

#include "ddldata/stored_image.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"
#include "trainer/core/philox.h"
#include "trainer/data/example.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {

inline std::span<const std::uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline void WriteRecords(const std::string& path, const std::vector<std::string>& records) {
  RecordWriter writer(path);
  for (const std::string& record : records) writer.Append(AsBytes(record));
  writer.Finish();
  writer.Commit();
}

// The message of the Error(EX_DATAERR) that `action` throws.
inline std::string DataErrorOf(const std::function<void()>& action) {
  const std::string message = tests::Rejection<Error>(EX_DATAERR, action);
  EXPECT_NE(message, "");
  return message;
}

// A smooth picture with some detail; another one for each seed.
inline std::vector<std::uint8_t> MakePixels(ImageSize size, int channels, std::uint64_t seed) {
  Random random(seed, RandomPurpose::kGenerate, 0);
  const std::uint32_t offset = random.Below(256);
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const auto ramp = static_cast<std::uint32_t>(x * (c + 1) + y * (3 - c % 3)) + offset;
        pixels.push_back(static_cast<std::uint8_t>((ramp + random.Below(32)) & 255U));
      }
    }
  }
  return pixels;
}

inline std::string MakeJpeg(ImageSize size, std::uint64_t seed = 1, JpegEncoding encoding = {}) {
  return EncodeJpeg(MakePixels(size, 3, seed), size, encoding);
}

inline std::string MakeImageRecord(std::int64_t label, std::uint64_t seed = 1,
                                   ImageSize size = {40, 30}) {
  ImageExample example;
  example.encoded = MakeJpeg(size, seed);
  example.label = label;
  example.size = size;
  example.boxes = {{0.25F, 0.25F, 0.75F, 0.75F}};
  return SerializeExample(example);
}

// The same with `encoded` instead of a JPEG file.
inline std::string MakeRecordOf(const std::string& encoded, std::int64_t label = 1) {
  return SerializeExample({.encoded = encoded, .label = label});
}

}  // namespace trainer
