// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "support/json.h"
#include "support/quoting.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"

namespace trainer {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kHeaderAlignment = 8;
constexpr const char* kMetadataKey = "__metadata__";

static_assert(std::endian::native == std::endian::little, "the format is little endian");

// Of a header: tensors, of these their shapes and offsets.  A ResNet-152 has 932, of nine values.
constexpr support::JsonLimits kHeaderLimits = {
    .bytes = kMaxSafetensorsHeader, .depth = 4, .values = 200'000};

std::uint64_t BytesOf(const TensorReader& tensor) {
  return static_cast<std::uint64_t>(tensor.shape.elements()) * SizeOf(tensor.dtype);
}

// Reads one header, with the file's name at hand for refusals.
class HeaderParser {
 public:
  HeaderParser(std::span<const std::byte> file, std::string_view path) : file_(file), path_(path) {}

  SafetensorsIndex Parse() const;

 private:
  [[noreturn]] void Reject(const std::string& what) const {
    throw Error(EX_DATAERR, std::string(path_) + ": not a whole safetensors file: " + what);
  }
  // Where the first bytes are not those of the format.
  [[noreturn]] void RejectForm(const std::string& what) const {
    const std::string other = DescribeOtherFormat(file_, path_);
    if (other.empty()) Reject(what);
    throw Error(EX_DATAERR, std::string(path_) + ": not a safetensors file but " + other);
  }
  // A whole file, with tensors that no network here has.
  [[noreturn]] void RejectTensor(const std::string& name, const std::string& what) const {
    throw Error(EX_DATAERR, std::string(path_) + ": tensor '" + name + "' has " + what);
  }

  TensorEntry ParseEntry(const std::string& name, const nlohmann::json& value) const;
  DType ParseDType(const std::string& name, const nlohmann::json& value) const;
  Shape ParseShape(const std::string& name, const nlohmann::json& value) const;
  SafetensorsMetadata ParseMetadata(const nlohmann::json& value) const;
  void CheckCover(const std::vector<TensorEntry>& tensors, std::uint64_t data_bytes) const;

  std::span<const std::byte> file_;
  std::string_view path_;
};

DType HeaderParser::ParseDType(const std::string& name, const nlohmann::json& value) const {
  static constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                                     DType::kUint8,   DType::kInt32,   DType::kInt64};
  if (!value.is_string()) Reject("the dtype of tensor '" + name + "' is not text");
  const auto& text = value.get_ref<const std::string&>();
  for (const DType dtype : kTypes) {
    if (NameOf(dtype) == text) return dtype;
  }
  RejectTensor(name, "the dtype '" + text +
                         "'; known are F32, F16, BF16, U8, I32, I64: save weights as one of the "
                         "first three, such as by .float() in PyTorch");
}

Shape HeaderParser::ParseShape(const std::string& name, const nlohmann::json& value) const {
  if (!value.is_array()) Reject("the shape of tensor '" + name + "' is not a list");
  if (value.size() > Shape::kMaxRank) {
    RejectTensor(name, std::to_string(value.size()) +
                           " dimensions, a ResNet's at most four: it "
                           "is of another network");
  }
  std::int64_t dims[Shape::kMaxRank] = {};
  // Bounded so that neither elements nor bytes overflow, whatever the order of the dimensions.
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto dim = support::IntegerOf<std::int64_t>(value[i], 0, kMaxElements);
    if (!dim) {
      Reject("the shape of tensor '" + name + "' holds something else than sensible numbers");
    }
    dims[i] = *dim;
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(dims[i], 1), &elements) ||
        elements > kMaxElements) {
      Reject("the shape of tensor '" + name + "' is too large");
    }
  }
  switch (value.size()) {
    case 0:
      return {};
    case 1:
      return {dims[0]};
    case 2:
      return {dims[0], dims[1]};
    case 3:
      return {dims[0], dims[1], dims[2]};
    default:
      return {dims[0], dims[1], dims[2], dims[3]};
  }
}

TensorEntry HeaderParser::ParseEntry(const std::string& name, const nlohmann::json& value) const {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets")) {
    Reject("tensor '" + name + "' needs dtype, shape and data_offsets, and nothing else");
  }
  TensorEntry entry;
  entry.name = name;
  entry.dtype = ParseDType(name, value["dtype"]);
  entry.shape = ParseShape(name, value["shape"]);
  const nlohmann::json& offsets = value["data_offsets"];
  const auto offset = [&](std::size_t i) {
    const bool is_there = offsets.is_array() && offsets.size() == 2;
    const auto value = is_there ? support::IntegerOf<std::uint64_t>(
                                      offsets[i], 0, std::numeric_limits<std::uint64_t>::max())
                                : std::nullopt;
    if (!value) Reject("the data_offsets of tensor '" + name + "' are not two numbers");
    return *value;
  };
  entry.begin = offset(0);
  entry.end = offset(1);
  const auto bytes = static_cast<std::uint64_t>(entry.shape.elements()) * SizeOf(entry.dtype);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    Reject("the data_offsets of tensor '" + name + "' do not fit its shape");
  }
  return entry;
}

SafetensorsMetadata HeaderParser::ParseMetadata(const nlohmann::json& value) const {
  SafetensorsMetadata metadata;
  if (!value.is_object()) Reject("__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) Reject("__metadata__ holds something else than text");
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

void HeaderParser::CheckCover(const std::vector<TensorEntry>& tensors,
                              std::uint64_t data_bytes) const {
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : tensors) {
    if (entry.begin != covered) {
      Reject("there is a hole or an overlap before tensor '" + entry.name + "'");
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    Reject("its tensors need " + std::to_string(covered) + " bytes, it has " +
           std::to_string(data_bytes) + "; is it cut short?");
  }
}

SafetensorsIndex HeaderParser::Parse() const {
  std::uint64_t length = 0;
  if (file_.size() < kLengthBytes) RejectForm("shorter than 8 bytes; is it cut short?");
  std::memcpy(&length, file_.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeader) {
    RejectForm("it claims a header of " + std::to_string(length) + " bytes");
  }
  const auto* text = reinterpret_cast<const char*>(file_.data()) + kLengthBytes;
  const bool has_text = length > 0 && file_.size() > kLengthBytes;
  if (has_text && text[0] != '{') RejectForm("its header does not begin with '{'");
  if (length > file_.size() - kLengthBytes) Reject("it ends within its header; is it cut short?");
  if (length == 0) RejectForm("its header does not begin with '{'");
  const std::string_view header_text(text, length);
  const std::string over = support::JsonOverLimit(header_text, kHeaderLimits);
  if (!over.empty()) Reject("its header is " + over);
  const auto header = support::ParseJson<>(header_text, kHeaderLimits);
  if (!header.is_object()) Reject("its header is not JSON");

  SafetensorsIndex index;
  index.data_offset = kLengthBytes + length;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      index.metadata = ParseMetadata(value);
    } else {
      index.tensors.push_back(ParseEntry(name, value));
    }
  }
  std::ranges::sort(index.tensors, [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  CheckCover(index.tensors, file_.size() - index.data_offset);
  return index;
}

}  // namespace

std::vector<std::size_t> DataOrder(std::span<const TensorReader> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return SizeOf(tensors[a].dtype) > SizeOf(tensors[b].dtype);
  });
  return order;
}

std::string MakeSafetensorsHeader(std::span<const TensorReader> tensors,
                                  SafetensorsMetadata metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  metadata["format"] = "pt";
  header[kMetadataKey] = std::move(metadata);
  std::uint64_t begin = 0;
  for (const std::size_t position : DataOrder(tensors)) {
    const TensorReader& tensor = tensors[position];
    DDL_CHECK(tensor.name != kMetadataKey && !header.contains(tensor.name));
    auto shape = nlohmann::ordered_json::array();
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    const std::uint64_t end = begin + BytesOf(tensor);
    header[tensor.name] = {
        {"dtype", NameOf(tensor.dtype)}, {"shape", shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  const std::uint64_t length = text.size();
  DDL_CHECK(length <= kMaxSafetensorsHeader);
  std::string result(kLengthBytes, '\0');
  std::memcpy(result.data(), &length, kLengthBytes);
  return result + text;
}

SafetensorsIndex ParseSafetensors(std::span<const std::byte> file, std::string_view path) {
  return HeaderParser(file, path).Parse();
}

SafetensorsFile SafetensorsFile::Read(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  file.bytes_ = ReadWholeFile(path, kMaxSafetensorsFile);
  file.index_ = ParseSafetensors(file.bytes(), path);
  return file;
}

void SafetensorsFile::Rename(
    const std::function<std::optional<std::string>(const std::string&)>& name) {
  std::erase_if(index_.tensors, [&](TensorEntry& entry) {
    std::optional<std::string> other = name(entry.name);
    if (!other) return true;
    entry.name = *std::move(other);
    return false;
  });
}

const TensorEntry* SafetensorsFile::Find(std::string_view name) const {
  const auto found = std::ranges::find(index_.tensors, name, &TensorEntry::name);
  return found == index_.tensors.end() ? nullptr : &*found;
}

std::span<const std::byte> SafetensorsFile::Data(const TensorEntry& entry) const {
  return bytes().subspan(index_.data_offset + entry.begin, entry.end - entry.begin);
}

void CheckTensors(const SafetensorsFile& file, std::span<const ExpectedTensor> expected,
                  std::string_view advice) {
  const auto reject = [&](const std::string& what) {
    throw Error(EX_DATAERR,
                file.path() + ": " + what + "; it is of another network: " + std::string(advice));
  };
  const auto describe = [](DType dtype, const Shape& shape) {
    return std::string(NameOf(dtype)) + " " + ToString(shape);
  };
  for (const ExpectedTensor& want : expected) {
    const TensorEntry* have = file.Find(want.name);
    if (have == nullptr) {
      if (!want.optional) reject("tensor '" + want.name + "' is missing");
    } else if (have->dtype != want.dtype || have->shape != want.shape) {
      reject("tensor '" + want.name + "' is " + describe(have->dtype, have->shape) +
             ", this network has " + describe(want.dtype, want.shape));
    }
  }
  for (const TensorEntry& have : file.tensors()) {
    if (std::ranges::find(expected, have.name, &ExpectedTensor::name) == expected.end()) {
      reject("tensor '" + have.name + "' is not one of this network");
    }
  }
}

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kConvert = ": make a safetensors file of it, with torchvision's names";
constexpr std::string_view kUnpack = ": unpack it, and give the file of weights in it";
constexpr std::string_view kOnlyAnImage = ": give a file of weights here";
constexpr std::string_view kDownloadAgain = ": download it again";

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
  std::string_view advice;
};

// From each format's own specification; `file`'s magic database has the same.
constexpr Magic kMagics[] = {
    {0, "version https://git-lfs"sv, "a pointer of git LFS, not the weights",
     ": fetch them by git lfs pull"},
    {0, "\x89HDF\r\n\x1a\n"sv, "HDF5 (Keras)", kConvert},
    {0, "\x93NUMPY"sv, "one array of NumPy (.npy)", kConvert},
    {0, "GGUF"sv, "GGUF", kConvert},
    {4, "TFL3"sv, "TensorFlow Lite", kConvert},
    {0, "model_checkpoint_path:"sv, "the list of a directory of TensorFlow's checkpoints",
     kConvert},
    {0, "\x08\x01\x12"sv, "a SavedModel of TensorFlow", kConvert},
    {0, "\x1f\x8b"sv, "packed by gzip", kUnpack},
    {0, "BZh"sv, "packed by bzip2", kUnpack},
    {0,
     "\xfd"
     "7zXZ"sv,
     "packed by xz", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "packed by zstd", kUnpack},
    {0, "7z\xbc\xaf"sv, "packed by 7-Zip", kUnpack},
    {257, "ustar"sv, "a tar archive", kUnpack},
    {0, "\xff\xd8\xff"sv, "an image (JPEG)", kOnlyAnImage},
    {0, "\x89PNG"sv, "an image (PNG)", kOnlyAnImage},
};

// The tail of a TensorFlow checkpoint's .index, which is a table of LevelDB's form.
constexpr std::string_view kTableEnd = "\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv;

std::string Convert(std::string_view what, std::string_view load, std::string_view path) {
  const std::string program =
      "import sys, torch, safetensors.torch as s; w = " + std::string(load) +
      "; s.save_file({k: v.contiguous().clone() for k, v in w.items() if torch.is_tensor(v)}, "
      "sys.argv[2])";
  const std::string src(path);
  const std::string dst = std::filesystem::path(path).replace_extension(".safetensors").string();
  return std::string(what) + ", not safetensors: make such a file of it by " +
         support::QuoteCommand({"python3", "-c", program, src, dst == src ? dst + ".new" : dst});
}

// Training scripts keep the weights beside the step and the optimizer, under one of these names.
std::string PyTorch(std::string_view path) {
  return Convert(
      "PyTorch's own form (torch.save)",
      "torch.load(sys.argv[1], map_location=\"cpu\", weights_only=True); w = "
      "next((w[k] for k in (\"state_dict\", \"model_state_dict\", \"model\") if k in w), "
      "w)",
      path);
}

std::string TorchScript(std::string_view path) {
  return Convert("a program of TorchScript (torch.jit.save)",
                 "torch.jit.load(sys.argv[1], map_location=\"cpu\").state_dict()", path);
}

// Archives have their names in the clear, whatever the order of their members.
std::string Zip(std::string_view file, std::string_view path) {
  const auto has = [&](std::string_view name) { return file.find(name) != file.npos; };
  if (!has("PK\x05\x06"sv)) {
    return "the beginning of a zip archive, such as torch.save writes, which is cut short" +
           std::string(kDownloadAgain);
  }
  if (has("/constants.pkl")) return TorchScript(path);
  if (has("data.pkl")) return PyTorch(path);
  if (has("model.weights.h5")) return "a model of Keras (.keras)" + std::string(kConvert);
  if (has(".npy")) return "arrays of NumPy (.npz)" + std::string(kConvert);
  return "a zip archive" + std::string(kUnpack);
}

bool IsPickle(std::string_view file) {
  return file.size() > 2 && file[0] == '\x80' && file[1] >= 2 && file[1] <= 5;
}

// A map whose first key is a short text, as Flax writes its parameters.
bool IsMessagePack(std::string_view file) {
  if (file.size() < 2) return false;
  const auto first = static_cast<unsigned char>(file[0]);
  const auto second = static_cast<unsigned char>(file[1]);
  return first >= 0x81 && first <= 0x8f && ((second >= 0xa1 && second <= 0xbf) || second == 0xd9);
}

// A message of protobuf that begins with its ir_version, and goes on with who has made it.
bool IsOnnx(std::string_view file) {
  return file.size() > 3 && file[0] == 8 && file[1] > 1 && file[1] < 32 &&
         "\x12\x1a\x22\x3a"sv.find(file[2]) != std::string_view::npos;
}

bool IsText(std::string_view head) {
  return std::ranges::all_of(
      head, [](unsigned char c) { return std::isprint(c) != 0 || std::isspace(c) != 0; });
}

std::string FirstLine(std::string_view text) {
  constexpr std::size_t kShown = 60;
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  return std::string(line.substr(0, kShown)) + (line.size() > kShown ? "..." : "");
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// Of a page, an answer of a server, or an index of other files.
std::string Text(std::string_view file) {
  constexpr std::size_t kHead = 512;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf"sv;
  std::string_view text = file.substr(0, kHead);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::string lower = LowerCase(text);
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html") ||
      lower.starts_with("<head") || lower.find("<html") != std::string::npos) {
    return "a web page (HTML), saved instead of the weights" + std::string(kDownloadAgain) +
           ", from the address that the page's own link has";
  }
  if (text.empty() || !IsText(text)) return "";
  if (text.starts_with("{") && file.find("\"weight_map\"") != file.npos) {
    return "the index of weights that are in several files: join these into one";
  }
  return "text; it begins with '" + FirstLine(text) + "'";
}

}  // namespace

std::string DescribeOtherFormat(std::span<const std::byte> bytes, std::string_view path) {
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (file.empty()) return "an empty file" + std::string(kDownloadAgain);
  for (const Magic& magic : kMagics) {
    if (file.size() < magic.offset || !file.substr(magic.offset).starts_with(magic.bytes)) continue;
    return std::string(magic.what) + std::string(magic.advice);
  }
  if (file.starts_with("PK\x03\x04"sv)) return Zip(file, path);
  if (IsPickle(file)) return PyTorch(path);
  if (IsMessagePack(file)) return "MessagePack (Flax)" + std::string(kConvert);
  if (IsOnnx(file)) return "ONNX" + std::string(kConvert);
  const bool is_part = path.find(".data-0") != path.npos;  // which has no mark of its own
  if (is_part || file.ends_with(kTableEnd)) {
    return "a part of a TensorFlow checkpoint" + std::string(kConvert);
  }
  const std::string_view head = file.substr(0, 64);
  if (std::ranges::all_of(head, [](char c) { return c == '\0'; })) {
    return "nothing but zeros at its beginning, as of a download that was broken off" +
           std::string(kDownloadAgain);
  }
  return Text(file);
}

}  // namespace trainer
