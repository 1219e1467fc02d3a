// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string WithLength(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

SafetensorsIndex Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "f.safetensors");
}

std::string RefusalOfTensors(const std::string& file) {
  try {
    Parse(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), StartsWith("f.safetensors: "));
    return error.what();
  }
  return "";
}

TEST(Safetensors, WritesTheHeaderOfTheSpecification) {
  const float value[2] = {1, 2};
  const TensorSource tensors[] = {{"a", DType::kFloat32, {2}, value}};
  EXPECT_EQ(
      MakeSafetensorsHeader(tensors),
      WithLength(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"
          "   "));
}

// transformers' load_state_dict and accelerate refuse metadata that do not say so.
TEST(Safetensors, EveryFileSaysThatItsFormIsThatOfPyTorch) {
  const float value = 1;
  const TensorSource tensors[] = {{"a", DType::kFloat32, {1}, &value}};
  const auto metadata = [&](const SafetensorsMetadata& given) {
    return Parse(MakeSafetensorsHeader(tensors, given) + "wxyz").metadata;
  };
  EXPECT_EQ(metadata({}), (SafetensorsMetadata{{"format", "pt"}}));
  EXPECT_EQ(metadata({{"architecture", "resnet50"}}),
            (SafetensorsMetadata{{"architecture", "resnet50"}, {"format", "pt"}}));
  EXPECT_EQ(metadata({{"step", "7"}}), (SafetensorsMetadata{{"format", "pt"}, {"step", "7"}}));
}

TEST(Safetensors, StoresWiderTypesFirstSoThatEachIsAligned) {
  const std::int64_t number = 7;
  const float values[3] = {};
  const TensorSource tensors[] = {{"half", DType::kFloat16, {3}, values},
                                  {"float", DType::kFloat32, {3}, values},
                                  {"count", DType::kInt64, {}, &number}};
  const std::string header = MakeSafetensorsHeader(tensors);
  EXPECT_EQ(header.size() % 8, 0U);
  const SafetensorsIndex index = Parse(header + std::string(8 + 12 + 6, '\0'));
  ASSERT_EQ(index.tensors.size(), 3U);
  EXPECT_EQ(index.tensors[0].name, "count");
  EXPECT_EQ(index.tensors[0].shape, Shape());
  EXPECT_EQ(index.tensors[1].name, "float");
  EXPECT_EQ(index.tensors[1].begin, 8U);
  EXPECT_EQ(index.tensors[2].name, "half");
  EXPECT_EQ(index.tensors[2].end, 26U);
}

TEST(Safetensors, RefusesToWriteOneNameTwice) {
  const float value = 0;
  const TensorSource tensors[] = {{"a", DType::kFloat32, {1}, &value},
                                  {"a", DType::kFloat32, {1}, &value}};
  EXPECT_THROW(MakeSafetensorsHeader(tensors), Error);
}

TEST(Safetensors, ReadsWhatOtherProgramsWrite) {
  // Made by the Python package: metadata last, a zero-size tensor, no padding.
  const SafetensorsIndex index = Parse(WithLength(
      R"({"e":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},"b":{"dtype":"U8","shape":[1,1,1,4],"data_offsets":[0,4]},"__metadata__":{"k":"v"}})",
      "wxyz"));
  EXPECT_EQ(index.metadata.at("k"), "v");
  ASSERT_EQ(index.tensors.size(), 2U);
  EXPECT_EQ(index.tensors[0].shape, (Shape{1, 1, 1, 4}));
  EXPECT_EQ(index.tensors[1].shape, (Shape{0, 3}));
}

TEST(Safetensors, RefusesWhatIsNotWhole) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const struct {
    std::string file;
    const char* says;
  } cases[] = {
      {"", "an empty file"},
      {"\1\2\3", "shorter than 8 bytes"},
      {"1234567", "text; it begins with '1234567'"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), "claims a header of"},
      {WithLength("{" + a + "}", "1234").substr(0, 20), "ends within its header"},
      {WithLength(""), "nothing but zeros"},
      {WithLength("[]"), "does not begin with '{'"},
      {WithLength("{"), "not JSON"},
      {WithLength("{} x"), "not JSON"},
      {WithLength("{" + a + "}", "123"), "need 4 bytes, it has 3"},
      {WithLength("{" + a + "}", "12345"), "need 4 bytes, it has 5"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "12345678"), "hole"},
      {WithLength("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"),
       "overlap"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
       "do not fit its shape"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234"),
       "do not fit its shape"},
      {WithLength(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", "12345678"),
       "dtype 'F64'"},
      {WithLength(R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", "1234"), "not text"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234"),
       "sensible numbers"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]}})", "1234"),
       "has 5 dimensions, a ResNet's at most four"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
       "too large"},
      {WithLength(
           R"({"a":{"dtype":"F32","shape":[281474976710656,0,281474976710656],"data_offsets":[0,0]}})"),
       "too large"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "1234"),
       "not two numbers"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1]}})", "1234"), "needs dtype"},
      {WithLength(R"({"a":7})"), "needs dtype"},
      {WithLength(R"({"__metadata__":{"a":1}})"), "something else than text"},
      {WithLength(R"({"__metadata__":1})"), "not an object"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(RefusalOfTensors(test.file), HasSubstr(test.says)) << test.file;
  }
}

TEST(Safetensors, SaysThatAFileIsMissing) {
  try {
    SafetensorsFile::Read("/nonexistent/x.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_STREQ(error.what(), "cannot open /nonexistent/x.safetensors: No such file or directory");
  }
}

TEST(Safetensors, RefusesADirectoryInThePlaceOfAFile) {
  const ScratchDirectory scratch;
  EXPECT_THROW(SafetensorsFile::Read(scratch.path().string()), Error);
}

class CheckTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Spill(path_,
          WithLength(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"));
  }
  std::string Refused(const std::vector<ExpectedTensor>& expected) {
    try {
      CheckTensors(SafetensorsFile::Read(path_), expected, "give another --model_dir");
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_DATAERR);
      EXPECT_THAT(error.what(), StartsWith(path_ + ": "));
      EXPECT_THAT(error.what(), HasSubstr("of another network: give another --model_dir"));
      return error.what();
    }
    return "accepted";
  }
  ScratchDirectory scratch_;
  std::string path_ = (scratch_.path() / "m.safetensors").string();
  ExpectedTensor w_{"w", DType::kFloat32, {2}};
};

TEST_F(CheckTensorsTest, AcceptsTheNetworkItIsOf) { EXPECT_EQ(Refused({w_}), "accepted"); }

TEST_F(CheckTensorsTest, AcceptsThatAnOptionalTensorIsMissing) {
  EXPECT_EQ(Refused({w_, {"count", DType::kInt64, {}, true}}), "accepted");
}

TEST_F(CheckTensorsTest, NamesAMissingTensor) {
  EXPECT_THAT(Refused({w_, {"fc.bias", DType::kFloat32, {2}}}),
              HasSubstr("tensor 'fc.bias' is missing"));
}

TEST_F(CheckTensorsTest, NamesAnUnknownTensor) {
  EXPECT_THAT(Refused({}), HasSubstr("tensor 'w' is not one of this network"));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherShape) {
  EXPECT_THAT(Refused({{"w", DType::kFloat32, {3}}}),
              HasSubstr("tensor 'w' is F32 (2), this network has F32 (3)"));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherType) {
  EXPECT_THAT(Refused({{"w", DType::kFloat16, {2}}}), HasSubstr("this network has F16 (2)"));
}

}  // namespace
}  // namespace trainer
