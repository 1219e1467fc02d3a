// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/other_formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "support/quoting.h"

namespace trainer {
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
