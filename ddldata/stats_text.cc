// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ddldata/stats.h"
#include "support/number.h"

namespace trainer {
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
