// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/other_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Describe(const std::string& file, const std::string& path = "w.pth") {
  return DescribeOtherFormat(std::as_bytes(std::span(file)), path);
}

// A zip archive of one member, as far as it is looked at.
std::string Zip(const std::string& member) {
  return "PK\x03\x04\x00\x00\x08\x08"s + member + "\x80\x02}q"s + "PK\x01\x02"s + member +
         "PK\x05\x06"s + std::string(18, '\0');
}

// Text with zeros behind it, so that a reader of safetensors takes it for a file, too.
std::string Long(std::string file) {
  file.resize(1000, '\x01');
  return file;
}

TEST(OtherFormats, PyTorchsOwnHasThePythonThatConvertsIt) {
  const std::string old = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19."s;
  for (const std::string& file :
       {Zip("archive/data.pkl"), Zip("resnet50/data.pkl"), old, "\x80\x04\x95"s + "pickled"}) {
    const std::string said = Describe(file, "runs/it's best.pth.tar");
    EXPECT_THAT(said, AllOf(HasSubstr("PyTorch's own form"), HasSubstr("python3 -c 'import "),
                            HasSubstr("torch.load(sys.argv[1]"), HasSubstr("s.save_file("),
                            HasSubstr("'runs/it'\\''s best.pth.tar'"),
                            HasSubstr("'runs/it'\\''s best.pth.safetensors'")));
  }
  EXPECT_THAT(Describe(Zip("net/constants.pkl") + Zip("net/data.pkl")),
              AllOf(HasSubstr("TorchScript"), HasSubstr("torch.jit.load")));
}

TEST(OtherFormats, AreNamedByTheirFirstBytes) {
  const struct {
    std::string file;
    const char* says;
  } cases[] = {
      {"\x89HDF\r\n\x1a\n"s, "HDF5 (Keras)"},
      {"\x93NUMPY\x01"s, "NumPy (.npy)"},
      {Zip("conv1.weight.npy"), "NumPy (.npz)"},
      {Zip("config.json") + Zip("model.weights.h5"), "Keras (.keras)"},
      {Zip("readme.txt"), "a zip archive: unpack it"},
      {Zip("archive/data.pkl").substr(0, 30), "cut short: download it again"},
      {"\x08\x07\x12\x07pytorch"s, "ONNX"},
      {"\x08\x03:\x80"s, "ONNX"},
      {"\x08\x01\x12\x80"s, "SavedModel"},
      {"\x81\xa6params\x85"s, "MessagePack"},
      {"\x00\x01\x02\x57\xfb\x80\x8b\x24\x75\x47\xdb"s, "TensorFlow checkpoint"},
      {"model_checkpoint_path: \"model.ckpt-5\"\n", "TensorFlow"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102\n", "git lfs pull"},
      {"<!DOCTYPE html>\n<html>", "a web page"},
      {"\xef\xbb\xbf \n<html lang=\"en\">", "a web page"},
      {"<!-- x --><HTML>", "a web page"},
      {"Entry not found", "text; it begins with 'Entry not found'"},
      {"{\"error\": \"Invalid credentials\"}", "text; it begins with '{\"error\""},
      {"{\"metadata\": {}, \"weight_map\": {\"a\": \"b\"}}", "in several files"},
      {"<?xml version=\"1.0\"?>\n<Error>", "text; it begins with '<?xml"},
      {"\x1f\x8b\x08"s, "gzip"},
      {"\xff\xd8\xff\xe0"s, "an image (JPEG)"},
      {std::string(4096, '\0'), "nothing but zeros"},
      {"", "an empty file"},
  };
  for (const auto& test : cases) EXPECT_THAT(Describe(test.file), HasSubstr(test.says));
  EXPECT_THAT(Describe("\x17\x9a\x31\xbd"s, "model.ckpt-5.data-00000-of-00001"),
              HasSubstr("TensorFlow checkpoint"));
  EXPECT_EQ(Describe("\x17\x9a\x31\xbd"s), "");
}

// Every one of them comes to this, by whatever its first 8 bytes are as a length.
TEST(OtherFormats, AreToldByTheReaderOfSafetensors) {
  const std::string files[] = {Zip("archive/data.pkl"),
                               Long("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9"s),
                               Long("\x89HDF\r\n\x1a\n"s),
                               Long("\x08\x07\x12\x07pytorch"s),
                               "version https://git-lfs.github.com/spec/v1\n",
                               Long("\x12\x01\0\0\0\0\0\0<html>"s),
                               "<html>",
                               "404",
                               std::string(64, '\0')};
  for (const std::string& file : files) {
    try {
      ParseSafetensors(std::as_bytes(std::span(file)), "w.bin");
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_DATAERR);
      EXPECT_THAT(error.what(), testing::StartsWith("w.bin: not a safetensors file but "));
      EXPECT_THAT(error.what(), AllOf(Not(HasSubstr("network")), Not(HasSubstr("--model_dir"))));
    }
  }
}

}  // namespace
}  // namespace trainer
