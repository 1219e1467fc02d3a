// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/tfrecord.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "support/number.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kWriteBytes = 1u << 20;
constexpr char kBecameShorter[] = "the file became shorter while it was in use";
constexpr std::size_t kChecksumBytes = 4;  // of a record's data, at its end

template <typename T>
T LoadLittleEndian(const std::uint8_t* bytes) {
  T value = 0;
  for (std::size_t i = sizeof(T); i > 0; --i) value = static_cast<T>(value << 8 | bytes[i - 1]);
  return value;
}

template <typename T>
void AppendLittleEndian(T value, std::vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

// What kind of file that is no TFRecord begins so, and what to do with it; "" if that is unknown.
constexpr std::size_t kKindBytes = 512;
std::string DescribeOtherKind(std::span<const std::uint8_t> begin) {
  struct Kind {
    std::size_t offset;
    std::string_view bytes;
    const char* what;
  };
  constexpr Kind kKinds[] = {
      {0, "\x1f\x8b", "the file is compressed: unpack it with gunzip first"},
      {257, "ustar", "the file is a tar: data files are made of it with: ddldata convert"},
      {0, "PAR1", "the file is Parquet, which is not read: make tars of it for ddldata convert"},
      {0, "PK\x03\x04",
       "the file is a ZIP archive: unpack it, and make data files of its images "
       "with: ddldata convert"},
  };
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  for (const Kind& kind : kKinds) {
    if (text.substr(std::min(kind.offset, text.size())).starts_with(kind.bytes)) return kind.what;
  }
  return "";
}

Error BadRecord(const std::string& path, std::uint64_t offset, const std::string& what) {
  return {EX_DATAERR, DescribeRecord(path, offset, what)};
}

}  // namespace

std::string DescribeRecord(const std::string& path, std::uint64_t offset, const std::string& what) {
  return path + ", record at offset " + std::to_string(offset) + ": " + what;
}

std::string ProblemOf(std::span<const std::uint8_t> record) {
  DDL_CHECK(record.size() >= kRecordFramingBytes);
  const std::size_t length = record.size() - kRecordFramingBytes;
  const bool header_is_good =
      LoadLittleEndian<std::uint32_t>(&record[8]) == MaskedCrc32c(std::as_bytes(record.first(8)));
  if (!header_is_good || LoadLittleEndian<std::uint64_t>(record.data()) != length) {
    return "no record of " + std::to_string(record.size()) +
           " bytes begins here: the file is damaged, or its index is of another file";
  }
  const auto data = record.subspan(kRecordHeaderBytes, length);
  if (LoadLittleEndian<std::uint32_t>(data.data() + length) != MaskedCrc32c(std::as_bytes(data))) {
    return "the checksum of the data is wrong: the file is damaged";
  }
  return "";
}

RecordFile::RecordFile(std::string path, bool keep_open)
    : path_(std::move(path)), identity_(IdentityOf(path_)) {
  if (keep_open) open_ = std::make_unique<OpenFile>();
}

support::Descriptor RecordFile::Open() const {
  support::Descriptor file = OpenForReading(path_);
  const FileIdentity now = IdentityOf(file, path_);
  if (now.device != identity_.device || now.inode != identity_.inode) {
    throw Error(EX_DATAERR, path_ + " was replaced by another file since the start");
  }
  return file;
}

std::size_t RecordFile::ReadBytes(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
  if (open_ == nullptr) return ReadAt(Open(), path_, offset, bytes);
  {
    const std::lock_guard lock(open_->mutex);
    if (!open_->file.is_open()) open_->file = Open();
  }
  return ReadAt(open_->file, path_, offset, bytes, [this] { return Open(); });
}

RecordPlace RecordFile::PlaceAt(std::uint64_t offset) const {
  std::array<std::uint8_t, kRecordHeaderBytes> header{};
  return PlaceOf(offset, std::span(header).first(ReadBytes(offset, header)));
}

// `header`: as much of it as the file has.
RecordPlace RecordFile::PlaceOf(std::uint64_t offset, std::span<const std::uint8_t> header) const {
  if (header.size() < kRecordHeaderBytes) {
    throw BadRecord(path_, offset,
                    "the file ends within the record's header: it is truncated or not a TFRecord");
  }
  if (LoadLittleEndian<std::uint32_t>(&header[8]) != MaskedCrc32c(std::as_bytes(header.first(8)))) {
    std::array<std::uint8_t, kKindBytes> begin{};
    const std::string kind =
        offset == 0 ? DescribeOtherKind(std::span(begin).first(ReadBytes(0, begin))) : "";
    throw BadRecord(path_, offset,
                    kind.empty() ? "the checksum of the length is wrong: the file is damaged or "
                                   "not a TFRecord"
                                 : kind);
  }
  const auto length = LoadLittleEndian<std::uint64_t>(header.data());
  const std::uint64_t left = bytes() - offset;
  if (left < kRecordFramingBytes || length > left - kRecordFramingBytes) {
    throw BadRecord(path_, offset,
                    "the record has " + std::to_string(length) + " bytes of data but only " +
                        std::to_string(left - kRecordHeaderBytes) +
                        " bytes of the file follow its header: the file is truncated");
  }
  return {offset, length + kRecordFramingBytes};
}

// Each read has the checksum of a record's data and the header behind it.
RecordScan RecordFile::ScanWithChecksum() const {
  RecordScan scan;
  std::vector<std::uint8_t> checksums;
  std::array<std::uint8_t, kChecksumBytes + kRecordHeaderBytes> bytes_there{};
  std::uint64_t offset = 0;
  while (bytes() > 0) {
    const std::size_t before = scan.places.empty() ? 0 : kChecksumBytes;
    const std::size_t behind = offset < bytes() ? kRecordHeaderBytes : 0;
    const auto piece = std::span(bytes_there).first(before + behind);
    const std::size_t got = ReadBytes(offset - before, piece);
    scan.bytes_read += got;
    if (got < before) throw BadRecord(path_, scan.places.back().offset, kBecameShorter);
    const auto checksum = piece.first(before);
    checksums.insert(checksums.end(), checksum.begin(), checksum.end());
    if (behind == 0) break;
    scan.places.push_back(PlaceOf(offset, piece.subspan(before, got - before)));
    offset += scan.places.back().size;
  }
  scan.checksum = Crc32c(std::as_bytes(std::span(checksums)));
  return scan;
}

std::uint32_t RecordFile::ChecksumOf(std::span<const RecordPlace> places) const {
  std::vector<std::uint8_t> checksums(places.size() * kChecksumBytes);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const RecordPlace& place = places[i];
    const auto checksum = std::span(checksums).subspan(i * kChecksumBytes, kChecksumBytes);
    if (ReadBytes(place.offset + place.size - kChecksumBytes, checksum) < kChecksumBytes) {
      throw BadRecord(path_, place.offset, kBecameShorter);
    }
  }
  return Crc32c(std::as_bytes(std::span(checksums)));
}

void RecordFile::Fetch(const RecordPlace& place, std::span<std::uint8_t> bytes) const {
  if (ReadBytes(place.offset, bytes) < bytes.size()) {
    throw BadRecord(path_, place.offset, kBecameShorter);
  }
}

std::span<const std::uint8_t> RecordFile::Check(const RecordPlace& place,
                                                std::span<const std::uint8_t> bytes) const {
  DDL_CHECK(bytes.size() == place.size);
  const std::string problem = ProblemOf(bytes);
  if (!problem.empty()) throw BadRecord(path_, place.offset, problem);
  return bytes.subspan(kRecordHeaderBytes, place.size - kRecordFramingBytes);
}

std::span<const std::uint8_t> RecordFile::Read(const RecordPlace& place,
                                               std::vector<std::uint8_t>& buffer) const {
  buffer.resize(place.size);
  Fetch(place, buffer);
  return Check(place, buffer);
}

RecordWriter::RecordWriter(const std::string& path) : file_(path) {}

void RecordWriter::Append(std::span<const std::uint8_t> data) {
  const std::size_t begin = pending_.size();
  AppendLittleEndian(static_cast<std::uint64_t>(data.size()), pending_);
  AppendLittleEndian(MaskedCrc32c(std::as_bytes(std::span(pending_).subspan(begin, 8))), pending_);
  pending_.insert(pending_.end(), data.begin(), data.end());
  AppendLittleEndian(MaskedCrc32c(std::as_bytes(data)), pending_);
  if (pending_.size() < kWriteBytes) return;
  file_.Write(pending_);
  pending_.clear();
}

void RecordWriter::Finish() {
  file_.Write(pending_);
  pending_.clear();
  file_.Finish();
}

void RecordWriter::Commit() { file_.Commit(); }

namespace {

Error BadIndex(const std::string& path, std::size_t line, const std::string& what) {
  return {EX_DATAERR, path + ":" + std::to_string(line) + ": " + what +
                          "; make a new index with: ddldata index DATA_DIR INDEX_DIR"};
}

// "OFFSET SIZE" and nothing else.
bool ParseLine(std::string_view line, RecordPlace& place) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return false;
  const auto offset = support::WholeNumber<std::uint64_t>(line.substr(0, blank));
  const auto size = support::WholeNumber<std::uint64_t>(line.substr(blank + 1));
  if (offset && size) place = {*offset, *size};
  return offset && size;
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
