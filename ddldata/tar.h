// SPDX-License-Identifier: Apache-2.0
//
// Tar archives, read by their headers alone: where the data of each member lies in the file, so
// that a member is read in place and nothing is unpacked.  The formats are ustar and pax (POSIX.1,
// pax(1)), GNU's long names and sizes, and the headers of before POSIX.  Input is not trusted: what
// is damaged, cut off or of another form is an error, never passed over.
//
// Errors are Error(EX_DATAERR) "PATH, tar header at offset N: ...", N in bytes of the file.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/file.h"

namespace trainer {

inline constexpr std::uint64_t kTarBlockBytes = 512;
inline constexpr std::uint64_t kMaxTarNameBytes = 4096;        // PATH_MAX
inline constexpr std::uint64_t kMaxPaxHeaderBytes = 1U << 20;  // they have some dozen bytes

// The end of a complaint about Parquet files, which are no tars.
inline constexpr std::string_view kParquetAdvice =
    "Parquet files are not read: doc/reference/data.md, 'Images for ddldata convert', has a "
    "few lines of Python that make tars of them";

// kOther: devices and named pipes.
enum class TarKind { kFile, kDirectory, kLink, kOther };

struct TarMember {
  TarKind kind = TarKind::kFile;
  std::string name;          // "a/b", without parts that are ".", and no "/" behind; "" is "./"
  std::uint64_t offset = 0;  // of the data in the file, in bytes
  std::uint64_t size = 0;    // of the data, in bytes
};

// A part of a file, in bytes: an archive may be a member of another one.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// Goes through one archive.  Not thread-safe.
class TarReader {
 public:
  // The archive is `range` of `file`, which must outlive it; `path` is its name in complaints.
  // REQUIRES: the range is within the file.
  TarReader(const support::Descriptor& file, std::string path, const ByteRange& range);

  // The next member, in the order of the archive; nothing behind the last one.  Names that are
  // absolute, climb out with ".." or have control characters are errors, as are sparse members.
  std::optional<TarMember> Next();

 private:
  using Block = std::array<std::uint8_t, kTarBlockBytes>;
  struct Extension;

  std::optional<Block> ReadHeader();
  std::uint64_t SizeOfData(const Block& block, const Extension& extension) const;
  void TakeExtension(char type, std::uint64_t size, Extension& extension) const;
  TarKind KindOf(char type, bool names_directory) const;
  std::string ReadText(std::uint64_t size, std::uint64_t max_bytes) const;
  void TakePax(std::string_view records, Extension& extension) const;
  void RequireZerosToTheEnd();
  [[noreturn]] void Fail(const std::string& what) const;

  const support::Descriptor& file_;
  std::string path_;
  std::uint64_t begin_;   // of the archive
  std::uint64_t header_;  // offset of the header at hand
  std::uint64_t next_;    // offset behind what has been read
  std::uint64_t end_;     // of the archive
};

// The classes of a WebDataset shard, which are in files KEY.cls beside the images.  Pure.

inline constexpr std::string_view kClassFileEnding = ".cls";  // in any case

// A file KEY.cls.
struct ClassFile {
  std::string path;  // within the tar
  std::string text;
};

// What WebDataset calls the key: the path up to the first dot of the file's own name.
std::string_view KeyOf(std::string_view path);

// The number of the class, from 0, of each of `images`, paths within `tar`.  Its file is the one
// that has the image's own path without the ending ("22.05.cls" of "22.05.jpg"), else the one of
// its key ("0.cls" of "0.left.jpg").  Throws Error(EX_DATAERR), with the path, if not every image
// has one such file of its own, every file one such image, and every file a number.
std::vector<int> NumbersOfImages(const std::string& tar, const std::vector<ClassFile>& files,
                                 const std::vector<std::string>& images);

}  // namespace trainer
