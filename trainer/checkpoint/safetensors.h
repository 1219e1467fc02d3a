// SPDX-License-Identifier: Apache-2.0
//
// The safetensors file format (github.com/huggingface/safetensors, README "Format"): 8 bytes of
// header length (little endian), a JSON header, the data.  Files written here load in PyTorch, and
// the other way round.
//
// Threads: free functions and const members are safe from any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/dtype.h"
#include "trainer/core/tensor.h"

namespace trainer {

// Largest header that is read or written, in bytes: the limit of the format.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
// Of a file, which is read as a whole: statistics of 65,536 ranks fit.
inline constexpr std::uint64_t kMaxSafetensorsFile = std::uint64_t{16} << 30;

using SafetensorsMetadata = std::map<std::string, std::string>;

// One tensor to be written.  `data` is dense row-major host memory of SizeOf(dtype) *
// shape.elements() bytes; it belongs to the caller.
struct TensorReader {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  const void* data = nullptr;
};

// Where one tensor lies in a file that was read.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t begin = 0;  // in bytes, from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsIndex {
  std::vector<TensorEntry> tensors;  // in the order of the data
  SafetensorsMetadata metadata;
  std::uint64_t data_offset = 0;  // in bytes, from the start of the file
};

// The first bytes of a file that holds `tensors`: length and header, padded to a multiple of 8.
// The data must follow in the order of DataOrder().  Its metadata are `metadata` and "format":
// "pt", without which transformers and accelerate refuse a file that has any metadata. REQUIRES:
// names are distinct and none is "__metadata__".
std::string MakeSafetensorsHeader(std::span<const TensorReader> tensors,
                                  SafetensorsMetadata metadata = {});

// Positions in `tensors` in the order in which their data is stored: wider types first, so that
// each is aligned, otherwise as given.
std::vector<std::size_t> DataOrder(std::span<const TensorReader> tensors);

// Reads and validates the header of `file`, a whole file: length, JSON, types, shapes of at most
// four dimensions, offsets that cover the data without holes or overlaps.  Throws Error(EX_DATAERR)
// that begins with `path` and names the form that the file has, where its bytes tell another one
// (safetensors.h).
SafetensorsIndex ParseSafetensors(std::span<const std::byte> file, std::string_view path);

// A file that was read into memory and validated.  Views into it live as long as it does.
class SafetensorsFile {
 public:
  // Throws Error(EX_DATAERR), or Error(EX_OSERR) when `path` cannot be read.
  static SafetensorsFile Read(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<TensorEntry>& tensors() const { return index_.tensors; }
  const SafetensorsMetadata& metadata() const { return index_.metadata; }
  std::span<const std::byte> bytes() const {  // the whole file
    return std::as_bytes(std::span(bytes_));
  }

  // Gives each tensor the name that `name` has for its own; those for which it has none are left
  // out of tensors().
  void Rename(const std::function<std::optional<std::string>(const std::string&)>& name);

  // nullptr when there is none.
  const TensorEntry* Find(std::string_view name) const;
  // The data of an entry of tensors(), row-major, aligned to 8 bytes if the file is (ours are).
  std::span<const std::byte> Data(const TensorEntry& entry) const;

 private:
  std::string path_;
  std::string bytes_;
  SafetensorsIndex index_;
};

// A tensor that a network needs.
struct ExpectedTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool optional = false;  // may be missing (num_batches_tracked in old files)
};

// Throws Error(EX_DATAERR), naming the file and the first tensor that is missing, unknown, or of
// another type or shape, unless `file` holds exactly `expected`.  `advice`: what to give in place
// of a file of another network.
void CheckTensors(const SafetensorsFile& file, std::span<const ExpectedTensor> expected,
                  std::string_view advice);

// What lies in the place of a safetensors file: other forms in which weights are kept, and what a
// download leaves when it goes wrong.  Pure.

// A clause about the file `path`, of which `file` is the whole content: what it is, by the bytes
// that such files begin with, and what to do ("a web page (HTML), not the weights: ...").  Of
// PyTorch's own form it has the Python that makes a safetensors file of it.  "" where the bytes
// tell nothing.  REQUIRES: `file` is no whole safetensors file.
std::string DescribeOtherFormat(std::span<const std::byte> file, std::string_view path);

}  // namespace trainer
