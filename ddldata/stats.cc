// SPDX-License-Identifier: Apache-2.0

#include "ddldata/stats.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "support/number.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/tfrecord.h"
#include "trainer/data/images/image_loader.h"

namespace trainer {
namespace {

// An image by its length and checksum, and where it is.
struct SeenImage {
  std::uint32_t bytes;
  std::uint32_t checksum;
  std::uint64_t offset;  // of the record
  std::uint32_t file;    // in FileStats
  std::int32_t label;

  std::pair<std::uint32_t, std::uint32_t> key() const { return {bytes, checksum}; }
};

// What one thread found in a file.
struct FileStats {
  Split split = Split::kTrain;
  std::string path;
  std::uint64_t bytes = 0;
  std::vector<SeenImage> images;
  std::int64_t images_with_boxes = 0;
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> heights;
};

std::span<const std::uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void MeasureFile(FileStats& stats, std::uint32_t number) {
  const RecordFile file(stats.path, true);
  stats.bytes = file.bytes();
  ImageDecoder decoder;
  std::vector<std::uint8_t> buffer;
  for (const RecordPlace& place : file.Scan()) {
    const auto data = file.Read(place, buffer);
    try {
      const ImageExample example = ParseExample(data);
      const ImageSize size = decoder.ReadHeader(BytesOf(example.encoded));
      if (!example.boxes.empty()) ++stats.images_with_boxes;
      stats.widths.push_back(size.width);
      stats.heights.push_back(size.height);
      stats.images.push_back({static_cast<std::uint32_t>(example.encoded.size()),
                              Crc32c(std::as_bytes(std::span(example.encoded))), place.offset,
                              number, static_cast<std::int32_t>(example.label)});
    } catch (const Error& error) {
      throw Error(error.exit_code(), DescribeRecord(stats.path, place.offset, error.what()));
    }
  }
}

NumberRange RangeOf(std::vector<std::int64_t> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::ranges::nth_element(values, middle);
  const auto [min, max] = std::ranges::minmax_element(values);
  return {*min, *middle, *max};
}

SplitStats SumUp(Split split, std::span<const FileStats> files) {
  SplitStats sum;
  sum.name = split == Split::kTrain ? "train" : "validation";
  std::map<std::int32_t, std::int64_t> images_of_class;
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> heights;
  std::vector<std::int64_t> sizes;
  for (const FileStats& file : files) {
    if (file.split != split) continue;
    ++sum.files;
    sum.records += std::ssize(file.images);
    sum.bytes += file.bytes;
    sum.images_with_boxes += file.images_with_boxes;
    std::ranges::copy(file.widths, std::back_inserter(widths));
    std::ranges::copy(file.heights, std::back_inserter(heights));
    for (const SeenImage& image : file.images) {
      sizes.push_back(image.bytes);
      ++images_of_class[image.label];
    }
  }
  sum.classes = std::ssize(images_of_class);
  std::vector<std::int64_t> counts;
  for (const auto& [label, count] : images_of_class) counts.push_back(count);
  sum.images_per_class = RangeOf(std::move(counts));
  sum.width = RangeOf(std::move(widths));
  sum.height = RangeOf(std::move(heights));
  sum.image_bytes = RangeOf(std::move(sizes));
  return sum;
}

std::string ReadImage(const FileStats& file, const SeenImage& image) {
  const RecordFile records(file.path, true);
  std::vector<std::uint8_t> buffer;
  return ParseExample(records.Read(records.PlaceAt(image.offset), buffer)).encoded;
}

DuplicateImage DescribeDuplicate(std::span<const SeenImage> images,
                                 std::span<const FileStats> files) {
  DuplicateImage duplicate;
  for (const SeenImage& image : images) {
    const FileStats& file = files[image.file];
    duplicate.records.push_back(file.path + ", record at offset " + std::to_string(image.offset));
    duplicate.is_in_both_splits |= file.split != files[images.front().file].split;
    duplicate.has_two_labels |= image.label != images.front().label;
  }
  return duplicate;
}

// Of images of one length and checksum, which need not be one image.
void CompareImages(std::span<const SeenImage> alike, std::span<const FileStats> files,
                   std::vector<DuplicateImage>& duplicates) {
  std::map<std::string, std::vector<SeenImage>> by_content;
  for (const SeenImage& image : alike) {
    by_content[ReadImage(files[image.file], image)].push_back(image);
  }
  for (const auto& [content, images] : by_content) {
    if (images.size() > 1) duplicates.push_back(DescribeDuplicate(images, files));
  }
}

std::vector<DuplicateImage> FindDuplicates(std::span<const FileStats> files) {
  std::vector<SeenImage> images;
  for (const FileStats& file : files) std::ranges::copy(file.images, std::back_inserter(images));
  // Stable: those that are alike stay in the order of files and offsets.
  std::ranges::stable_sort(images, {}, &SeenImage::key);
  std::vector<DuplicateImage> duplicates;
  for (auto begin = images.begin(); begin != images.end();) {
    const auto end = std::find_if(
        begin, images.end(), [&](const SeenImage& image) { return image.key() != begin->key(); });
    if (end - begin > 1) CompareImages({begin, end}, files, duplicates);
    begin = end;
  }
  std::ranges::sort(duplicates, {}, &DuplicateImage::records);
  return duplicates;
}

}  // namespace

DataStats MeasureDataSet(const std::string& data_dir, int threads) {
  std::vector<FileStats> files;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    DataFiles found = ListDataFiles(data_dir, split, HasShardManifest(data_dir));
    if (!found.problems.empty()) throw Error(EX_DATAERR, found.problems.front());
    for (std::string& path : found.paths) {
      files.emplace_back();
      files.back().split = split;
      files.back().path = std::move(path);
    }
  }
  if (files.empty()) {
    throw Error(EX_DATAERR, "the data directory " + data_dir +
                                " has no file train-* or validation-*" + PrintFindings(data_dir));
  }
  ParallelFor(threads, std::ssize(files), [&](std::int64_t i) {
    MeasureFile(files[static_cast<std::size_t>(i)], static_cast<std::uint32_t>(i));
  });
  DataStats stats;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    SplitStats of_split = SumUp(split, files);
    if (of_split.files > 0) stats.splits.push_back(std::move(of_split));
  }
  stats.duplicates = FindDuplicates(files);
  return stats;
}

namespace {

using nlohmann::ordered_json;

constexpr std::ptrdiff_t kNamedDuplicates = 5;
constexpr std::size_t kNamedRecords = 4;  // of each

// "33 to 500, median 375".
std::string FormatRange(const NumberRange& range) {
  return std::to_string(range.min) + " to " + std::to_string(range.max) + ", median " +
         std::to_string(range.median);
}

std::string FormatRow(const std::string& name, const std::string& value) {
  constexpr std::size_t kNameWidth = 20;
  std::string row = "  " + name;
  row.resize(std::max(kNameWidth, row.size() + 1), ' ');
  return row + value + "\n";
}

std::string FormatMegabytes(std::uint64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text.data();
}

std::string FormatSplit(const SplitStats& split) {
  return split.name + "\n" +
         FormatRow("files", std::to_string(split.files) + ", " + FormatMegabytes(split.bytes)) +
         FormatRow("images", std::to_string(split.records)) +
         FormatRow("bounding boxes", "of " + support::Counted(split.images_with_boxes, "image")) +
         FormatRow("classes", std::to_string(split.classes)) +
         FormatRow("images per class", FormatRange(split.images_per_class)) +
         FormatRow("width, pixels", FormatRange(split.width)) +
         FormatRow("height, pixels", FormatRange(split.height)) +
         FormatRow("image, bytes", FormatRange(split.image_bytes));
}

std::ptrdiff_t CountIf(const DataStats& stats, bool DuplicateImage::*member) {
  return std::ranges::count(stats.duplicates, true, member);
}

ordered_json RangeAsJson(const NumberRange& range) {
  return {{"min", range.min}, {"median", range.median}, {"max", range.max}};
}

}  // namespace

std::string FormatStats(const DataStats& stats) {
  std::string text;
  for (const SplitStats& split : stats.splits) text += FormatSplit(split);
  text += support::Counted(std::ssize(stats.duplicates), "image") + " more than once; " +
          std::to_string(CountIf(stats, &DuplicateImage::is_in_both_splits)) + " in both splits, " +
          std::to_string(CountIf(stats, &DuplicateImage::has_two_labels)) + " with two labels\n";
  const std::ptrdiff_t named = std::min(kNamedDuplicates, std::ssize(stats.duplicates));
  for (std::ptrdiff_t i = 0; i < named; ++i) {
    const DuplicateImage& duplicate = stats.duplicates[static_cast<std::size_t>(i)];
    text += "  " + duplicate.records.front() + "\n";
    const std::size_t shown = std::min(kNamedRecords, duplicate.records.size());
    for (std::size_t other = 1; other < shown; ++other) {
      text += "    = " + duplicate.records[other] + "\n";
    }
    const std::size_t more = duplicate.records.size() - shown;
    if (more > 0) text += "    and " + std::to_string(more) + " more\n";
  }
  if (named < std::ssize(stats.duplicates)) text += "  ...: --json lists all\n";
  return text;
}

std::string FormatStatsAsJson(const DataStats& stats) {
  ordered_json splits = ordered_json::object();
  for (const SplitStats& split : stats.splits) {
    splits[split.name] = {{"files", split.files},
                          {"records", split.records},
                          {"bytes", split.bytes},
                          {"images_with_boxes", split.images_with_boxes},
                          {"classes", split.classes},
                          {"images_per_class", RangeAsJson(split.images_per_class)},
                          {"width", RangeAsJson(split.width)},
                          {"height", RangeAsJson(split.height)},
                          {"image_bytes", RangeAsJson(split.image_bytes)}};
  }
  ordered_json duplicates = ordered_json::array();
  for (const DuplicateImage& duplicate : stats.duplicates) {
    duplicates.push_back({{"records", duplicate.records},
                          {"in_both_splits", duplicate.is_in_both_splits},
                          {"two_labels", duplicate.has_two_labels}});
  }
  const ordered_json all = {{"splits", splits}, {"duplicates", duplicates}};
  // Names of files need not be UTF-8.
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace trainer
