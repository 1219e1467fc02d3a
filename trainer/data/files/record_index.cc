// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/record_index.h"

#include <charconv>
#include <cstddef>
#include <system_error>

#include "trainer/core/error.h"

namespace trainer {
namespace {

Error BadIndex(const std::string& path, std::size_t line, const std::string& what) {
  return {EX_DATAERR, path + ":" + std::to_string(line) + ": " + what +
                          "; make a new index with: ddldata index DATA_DIR INDEX_DIR"};
}

// "OFFSET SIZE" and nothing else.
bool ParseLine(std::string_view line, RecordPlace& place) {
  const char* end = line.data() + line.size();
  const auto offset = std::from_chars(line.data(), end, place.offset);
  if (offset.ec != std::errc() || offset.ptr == end || *offset.ptr != ' ') return false;
  const auto size = std::from_chars(offset.ptr + 1, end, place.size);
  return size.ec == std::errc() && size.ptr == end;
}

}  // namespace

std::vector<RecordPlace> ParseIndex(std::string_view text, const std::string& path,
                                    std::uint64_t data_bytes) {
  std::vector<RecordPlace> places;
  std::uint64_t expected = 0;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t length = text.find('\n');
    RecordPlace place;
    if (!ParseLine(text.substr(0, length), place)) {
      throw BadIndex(path, line_number, "expected \"OFFSET SIZE\", as in \"0 110537\"");
    }
    if (place.offset != expected || place.size < kRecordFramingBytes ||
        place.size > data_bytes - expected) {
      throw BadIndex(path, line_number,
                     "a record of " + std::to_string(place.size) + " bytes at offset " +
                         std::to_string(place.offset) +
                         " does not fit: " + std::to_string(expected) + " of the data file's " +
                         std::to_string(data_bytes) + " bytes are taken by the lines before");
    }
    expected += place.size;
    places.push_back(place);
    text.remove_prefix(length == std::string_view::npos ? text.size() : length + 1);
  }
  if (expected != data_bytes) {
    throw BadIndex(path, line_number + 1,
                   "the index ends at byte " + std::to_string(expected) +
                       " but the data file has " + std::to_string(data_bytes) + " bytes");
  }
  return places;
}

std::string FormatIndex(const std::vector<RecordPlace>& places) {
  std::string text;
  for (const RecordPlace& place : places) {
    text += std::to_string(place.offset) + " " + std::to_string(place.size) + "\n";
  }
  return text;
}

}  // namespace trainer
