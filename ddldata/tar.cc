// SPDX-License-Identifier: Apache-2.0

#include "ddldata/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/number.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

using TarBlock = std::array<std::uint8_t, kTarBlockBytes>;  // TarReader::Block

// Fields of a header: offset and length in bytes.
constexpr std::size_t kNameAt = 0;
constexpr std::size_t kNameLength = 100;
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeLength = 12;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kChecksumLength = 8;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;
constexpr std::size_t kPrefixAt = 345;
constexpr std::size_t kPrefixLength = 155;

// The text up to its first zero byte.
std::string TextField(const TarBlock& block, std::size_t at, std::size_t length) {
  const auto* begin = reinterpret_cast<const char*>(block.data() + at);
  return {begin, strnlen(begin, length)};
}

// Octal digits with blanks in front and a blank or a zero behind, or, by GNU, a number of base 256
// after a byte 0x80.
std::optional<std::uint64_t> NumberField(const TarBlock& block, std::size_t at,
                                         std::size_t length) {
  std::uint64_t value = 0;
  if (block[at] == 0x80) {
    for (std::size_t i = at + 1; i < at + length; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | block[i];
    }
    return value;
  }
  const std::string text = TextField(block, at, length);
  const char* begin = text.data() + std::min(text.find_first_not_of(' '), text.size());
  const char* end = text.data() + text.size();
  constexpr int kOctal = 8;
  const auto result = std::from_chars(begin, end, value, kOctal);
  if (result.ec != std::errc()) return std::nullopt;
  return std::all_of(result.ptr, end, [](char c) { return c == ' '; }) ? std::optional(value)
                                                                       : std::nullopt;
}

// The sum of all bytes, those of the checksum itself taken for blanks.
std::uint64_t ChecksumOfHeader(const TarBlock& block) {
  std::uint64_t sum = kChecksumLength * ' ';
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i < kChecksumAt || i >= kChecksumAt + kChecksumLength) sum += block[i];
  }
  return sum;
}

bool IsZero(std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

// Behind the prefix of POSIX's own headers; GNU's older ones have other things in its place.
std::string NameOfHeader(const TarBlock& block) {
  const std::string name = TextField(block, kNameAt, kNameLength);
  if (std::memcmp(block.data() + kMagicAt, "ustar\0", 6) != 0) return name;
  const std::string prefix = TextField(block, kPrefixAt, kPrefixLength);
  return prefix.empty() ? name : prefix + "/" + name;
}

// What is wrong with a member's name, "" if nothing.
std::string WhyBadName(std::string_view name) {
  if (name.empty()) return "the member has no name";
  if (name.size() > kMaxTarNameBytes) {
    return "the name has more than " + std::to_string(kMaxTarNameBytes) + " bytes";
  }
  const bool has_control = std::ranges::any_of(
      name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (has_control) return "the name has control characters";
  if (name.front() == '/') return "the name " + std::string(name) + " is absolute";
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") {
      return "the name " + std::string(name) + " climbs out of the archive";
    }
    begin = end + 1;
  }
  return "";
}

// Without parts that are empty or ".": "./a//b/" is "a/b".
std::string WithoutDots(std::string_view name) {
  std::string plain;
  while (!name.empty()) {
    const std::size_t length = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, length);
    name.remove_prefix(std::min(length + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (!plain.empty()) plain += '/';
    plain += part;
  }
  return plain;
}

// Whether the block begins with a length of 8 bytes and the checksum of that, as TFRecord files do.
bool BeginsAsRecords(const TarBlock& block) {
  constexpr std::size_t kLength = 8;
  std::uint32_t checksum = 0;
  for (std::size_t i = 0; i < sizeof checksum; ++i) {
    checksum |= std::uint32_t{block[kLength + i]} << (8 * i);
  }
  return checksum != 0 && checksum == MaskedCrc32c(std::as_bytes(std::span(block).first(kLength)));
}

// What kind of file that is no tar begins so, and what to do with it; "" if that is not known.
std::string DescribeOtherKind(const TarBlock& block) {
  const auto starts_with = [&](std::string_view magic) {
    return std::memcmp(block.data(), magic.data(), magic.size()) == 0;
  };
  if (starts_with("\x1f\x8b")) return "the file is compressed: unpack it with gunzip first";
  if (starts_with("BZh")) return "the file is compressed: unpack it with bunzip2 first";
  if (starts_with("\xfd"
                  "7zXZ"))
    return "the file is compressed: unpack it with unxz first";
  if (starts_with("\x28\xb5\x2f\xfd")) return "the file is compressed: unpack it with unzstd first";
  if (starts_with("PAR1")) return std::string(kParquetAdvice);
  if (starts_with("PK\x03\x04")) return "the file is a ZIP archive: unpack it with unzip first";
  if (starts_with("7z\xbc\xaf\x27\x1c")) return "the file is a 7z archive: unpack it with 7z first";
  if (starts_with("Rar!")) return "the file is a RAR archive: unpack it with unrar first";
  if (starts_with("\x89HDF")) return "the file is HDF5, which is not read: make image files of it";
  if (starts_with("ARROW1")) return "the file is Arrow, which is not read: make image files of it";
  if (starts_with("\xff\xfe") || starts_with("\xfe\xff")) {
    return "the file is a text in UTF-16: save it as UTF-8";
  }
  if (BeginsAsRecords(block)) {
    return "the file is a TFRecord file, which needs no conversion: give its directory to "
           "ddltraind "
           "--data_dir, or to ddldata split";
  }
  return "";
}

// Headers that say something of the next one: pax, pax for all members, GNU's long name and long
// target of a link.
bool IsExtension(char type) { return type == 'x' || type == 'g' || type == 'L' || type == 'K'; }

std::uint64_t RoundUp(std::uint64_t size) {
  return (size + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

}  // namespace

// What headers before a member's own say of it.
struct TarReader::Extension {
  std::optional<std::string> name;
  std::optional<std::uint64_t> size;
};

TarReader::TarReader(const support::Descriptor& file, std::string path, const ByteRange& range)
    : file_(file),
      path_(std::move(path)),
      begin_(range.offset),
      header_(range.offset),
      next_(range.offset),
      end_(range.offset + range.size) {}

void TarReader::Fail(const std::string& what) const {
  throw Error(EX_DATAERR,
              path_ + ", tar header at offset " + std::to_string(header_) + ": " + what);
}

std::string TarReader::ReadText(std::uint64_t size, std::uint64_t max_bytes) const {
  if (size > max_bytes) {
    Fail("an extension of " + std::to_string(size) + " bytes, at most " +
         std::to_string(max_bytes) + " are read");
  }
  std::string text(size, '\0');
  if (ReadAt(file_, path_, next_, {reinterpret_cast<std::uint8_t*>(text.data()), size}) < size) {
    Fail("the file became shorter while it was in use");
  }
  return text;
}

// Records "LENGTH KEY=VALUE\n", LENGTH in bytes of the whole record.
void TarReader::TakePax(std::string_view records, Extension& extension) const {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto result = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(result.ptr - records.data());
    if (result.ec != std::errc() || length > records.size() || length < digits + 2 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      Fail("a pax record is not of the form \"LENGTH KEY=VALUE\"");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) Fail("a pax record has no '='");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) Fail("a sparse member: pack it without tar --sparse");
    if (key == "path") extension.name = value;
    if (key == "size") {
      std::uint64_t size = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), size);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
        Fail("the pax record size is not numeric");
      }
      extension.size = size;
    }
  }
}

void TarReader::RequireZerosToTheEnd() {
  constexpr std::size_t kPiece = 1U << 16;
  std::vector<std::uint8_t> piece(kPiece);
  while (next_ < end_) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, end_ - next_));
    const std::size_t got = ReadAt(file_, path_, next_, std::span(piece).first(wanted));
    if (got < wanted) Fail("the file became shorter while it was in use");
    if (!IsZero(std::span(piece).first(got))) {
      Fail(
          "something follows the end of the archive: give archives as files of their own, not "
          "one behind the other in one file");
    }
    next_ += got;
  }
}

// The header at `next_`; nothing at the mark of the end.
std::optional<TarReader::Block> TarReader::ReadHeader() {
  header_ = next_;
  Block block{};
  const std::uint64_t left = end_ - next_;
  const auto whole = static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size()));
  if (ReadAt(file_, path_, next_, std::span(block).first(whole)) < block.size()) {
    const std::string why = header_ == begin_ ? DescribeOtherKind(block) : "";
    if (!why.empty()) Fail(why);
    Fail("the file ends without the mark of its end: it is truncated");
  }
  next_ += block.size();
  if (IsZero(block)) {
    RequireZerosToTheEnd();
    next_ = header_;  // another call finds the end again
    return std::nullopt;
  }
  if (NumberField(block, kChecksumAt, kChecksumLength) != ChecksumOfHeader(block)) {
    const std::string why = header_ == begin_ ? DescribeOtherKind(block) : "";
    if (!why.empty()) Fail(why);
    Fail(std::string("the checksum of the header is wrong: the file is damaged") +
         (header_ == begin_ ? " or no tar archive" : ""));
  }
  return block;
}

std::uint64_t TarReader::SizeOfData(const Block& block, const Extension& extension) const {
  const char type = static_cast<char>(block[kTypeAt]);
  // Links, devices and directories have no data, whatever their field says.
  if (type >= '1' && type <= '6') return 0;
  const auto listed = NumberField(block, kSizeAt, kSizeLength);
  if (!listed) Fail("the size is not numeric");
  const std::uint64_t size = IsExtension(type) ? *listed : extension.size.value_or(*listed);
  const std::uint64_t left = end_ - next_;
  if (size > left || RoundUp(size) > left) {
    Fail("the member has " + std::to_string(size) + " bytes, but only " + std::to_string(left) +
         " are left: the file is truncated");
  }
  return size;
}

void TarReader::TakeExtension(char type, std::uint64_t size, Extension& extension) const {
  if (type == 'x') TakePax(ReadText(size, kMaxPaxHeaderBytes), extension);
  if (type == 'g') {
    Extension for_all;
    TakePax(ReadText(size, kMaxPaxHeaderBytes), for_all);
    if (for_all.name || for_all.size) Fail("a pax header gives all members one name or one size");
  }
  if (type == 'L') {
    const std::string text = ReadText(size, kMaxTarNameBytes + 1);
    extension.name = text.substr(0, text.find('\0'));
  }
}

TarKind TarReader::KindOf(char type, bool names_directory) const {
  switch (type) {
    case '0':
    case '7':   // contiguous
    case '\0':  // before POSIX, where a directory is a name with '/' behind
      return names_directory ? TarKind::kDirectory : TarKind::kFile;
    case '1':
    case '2':
      return TarKind::kLink;
    case '3':
    case '4':
    case '6':
      return TarKind::kOther;
    case '5':
      return TarKind::kDirectory;
    default:
      Fail("a member of type " + std::to_string(static_cast<unsigned char>(type)) +
           ", which is neither file, directory nor link: pack it anew with tar --format=pax");
  }
}

std::optional<TarMember> TarReader::Next() {
  Extension extension;
  while (const auto block = ReadHeader()) {
    const char type = static_cast<char>((*block)[kTypeAt]);
    const std::uint64_t size = SizeOfData(*block, extension);
    if (IsExtension(type)) {
      TakeExtension(type, size, extension);
      next_ += RoundUp(size);
      continue;
    }
    const std::string name = extension.name.value_or(NameOfHeader(*block));
    if (const std::string why = WhyBadName(name); !why.empty()) Fail(why);
    const TarMember member{KindOf(type, name.ends_with('/')), WithoutDots(name), next_, size};
    next_ += RoundUp(size);
    return member;
  }
  if (extension.name || extension.size) {
    Fail("the archive ends behind a header that is to extend another one");
  }
  return std::nullopt;
}

namespace {

constexpr int kMaxNumber = 1'000'000;

// Of an image or a file KEY.cls: the path up to the last dot.
std::string_view WithoutLastEnding(std::string_view path) {
  return path.substr(0, path.rfind('.'));
}

int NumberIn(const std::string& tar, const ClassFile& file) {
  std::string_view text = file.text;
  while (text.ends_with('\n')) text = Trimmed(text.substr(0, text.size() - 1));
  const auto number = support::WholeNumber<int>(Trimmed(text));
  if (!number || *number < 0 || *number > kMaxNumber) {
    throw Error(EX_DATAERR, tar + ", " + file.path +
                                ": expected the number of a class, from 0 to " +
                                std::to_string(kMaxNumber));
  }
  return *number;
}

// Which file is of which image, both by their places in the lists.
class Pairing {
 public:
  Pairing(const std::string& tar, const std::vector<ClassFile>& files,
          const std::vector<std::string>& images)
      : tar_(tar),
        files_(files),
        images_(images),
        file_of_(images.size()),
        image_of_(files.size()) {}

  // Throws as NumbersOfImages, but of the numbers.
  std::vector<std::size_t> Make();

 private:
  [[noreturn]] void RejectOneKey(const std::string& a, const std::string& b,
                                 const std::string& why) const;
  void PairByName();
  void PairByKey();

  const std::string& tar_;
  const std::vector<ClassFile>& files_;
  const std::vector<std::string>& images_;
  std::vector<std::optional<std::size_t>> file_of_;
  std::vector<std::optional<std::size_t>> image_of_;
};

void Pairing::RejectOneKey(const std::string& a, const std::string& b,
                           const std::string& why) const {
  throw Error(EX_DATAERR, tar_ + ": " + a + " and " + b + " have one key, " +
                              std::string(KeyOf(a)) + ", " + why);
}

void Pairing::PairByName() {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto [other, is_new] = by_name.emplace(WithoutLastEnding(files_[i].path), i);
    if (is_new) continue;
    RejectOneKey(files_[other->second].path, files_[i].path, "which has one class: remove one");
  }
  for (std::size_t i = 0; i < images_.size(); ++i) {
    const auto found = by_name.find(WithoutLastEnding(images_[i]));
    if (found == by_name.end() || image_of_[found->second]) continue;
    image_of_[found->second] = i;
    file_of_[i] = found->second;
  }
}

void Pairing::PairByKey() {
  std::multimap<std::string_view, std::size_t> by_key;
  for (std::size_t i = 0; i < files_.size(); ++i) by_key.emplace(KeyOf(files_[i].path), i);
  for (std::size_t i = 0; i < images_.size(); ++i) {
    if (file_of_[i]) continue;
    const auto [begin, end] = by_key.equal_range(KeyOf(images_[i]));
    const auto own = std::string(WithoutLastEnding(images_[i])) + std::string(kClassFileEnding);
    if (begin == end) {
      throw Error(EX_DATAERR, tar_ + ", " + images_[i] + ": the image has no file " +
                                  std::string(KeyOf(images_[i])) + std::string(kClassFileEnding) +
                                  " of its own");
    }
    const std::size_t file = begin->second;
    if (std::next(begin) != end) {
      RejectOneKey(files_[file].path, files_[std::next(begin)->second].path,
                   "so that the class of " + images_[i] + " cannot be known: name its file " + own);
    }
    if (image_of_[file]) {
      RejectOneKey(images_[i], images_[*image_of_[file]],
                   "and one class, that in " + files_[file].path +
                       ": give each image a key and a KEY.cls of its own");
    }
    image_of_[file] = i;
    file_of_[i] = file;
  }
}

std::vector<std::size_t> Pairing::Make() {
  PairByName();
  PairByKey();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (image_of_[i]) continue;
    throw Error(EX_DATAERR, tar_ + ", " + files_[i].path + ": there is no image for it");
  }
  std::vector<std::size_t> file_of;
  for (const auto& file : file_of_) file_of.push_back(file.value());
  return file_of;
}

}  // namespace

std::string_view KeyOf(std::string_view path) {
  return path.substr(0, path.find('.', path.size() - BaseName(path).size()));
}

std::vector<int> NumbersOfImages(const std::string& tar, const std::vector<ClassFile>& files,
                                 const std::vector<std::string>& images) {
  std::vector<int> numbers;
  for (const std::size_t file : Pairing(tar, files, images).Make()) {
    numbers.push_back(NumberIn(tar, files[file]));
  }
  return numbers;
}

}  // namespace trainer
