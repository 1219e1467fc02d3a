// SPDX-License-Identifier: Apache-2.0
//
// --init_from with the names and types that other programs give to a ResNet's values.

#include <list>

#include "tests/support/test.h"
#include "tests/trainer/train/init_from_fixture.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ForeignWeightsTest : public InitFromTest {
 protected:
  void Reset() {
    fs::remove(config_.init_from);
    sources_ = SourcesOf(tensors_);
    log_text_.str("");
  }

  void Prefix(const std::string& prefix) {
    for (TensorReader& source : sources_) source.name = prefix + source.name;
  }

  void ExpectTaken(bool with_head = true) {
    const auto loaded = ExportPart(network_, Network::Part::kValue, "", *stream_);
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      if (!with_head && loaded[i].name.starts_with("fc.")) continue;
      EXPECT_EQ(loaded[i].values, tensors_[i].values) << loaded[i].name;
    }
  }

  // Values that 16 bits hold, as `bits` has them, in sources_ and tensors_.
  template <typename Bits>
  void Narrow(DType dtype, const Bits& bits) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      std::vector<std::uint16_t>& halves = halves_.emplace_back();
      for (std::size_t i = 0; i < tensors_[t].values.size(); ++i) {
        const auto exponent = static_cast<int>(i % 8);  // 2^exponent
        tensors_[t].values[i] = std::ldexp(1.0F, exponent);
        halves.push_back(bits(exponent));
      }
      sources_[t].dtype = dtype;
      sources_[t].data = halves.data();
    }
  }

  std::list<std::vector<std::uint16_t>> halves_;
};

TEST_F(ForeignWeightsTest, APrefixOfAllNamesIsTakenOffWithANote) {
  for (const std::string prefix :
       {"module.", "model.", "backbone.", "module.encoder_q.", "net.0.", "stage 1."}) {
    Prefix(prefix);
    Load();
    ExpectTaken();
    EXPECT_THAT(log_text_.str(), HasSubstr("the prefix '" + prefix + "' of the names in " +
                                           config_.init_from.string() + " is taken off"));
    Reset();
  }
  Load();
  EXPECT_THAT(log_text_.str(), Not(HasSubstr("prefix")));
}

TEST_F(ForeignWeightsTest, LayersOfCompileAndFsdpAreTakenOutOfNames) {
  for (const std::string prefix : {"_orig_mod.", "module._orig_mod.", "_orig_mod.module.",
                                   "_fsdp_wrapped_module.", "model._orig_mod."}) {
    Prefix(prefix);
    Load();
    ExpectTaken();
    EXPECT_THAT(log_text_.str(), HasSubstr("torch.compile or FSDP"));
    Reset();
  }
  for (TensorReader& source : sources_) {
    if (source.name.starts_with("layer1.")) source.name.insert(7, "_orig_mod.");
  }
  Load();
  ExpectTaken();
}

TEST_F(ForeignWeightsTest, CountersOfWrappersAreIgnored) {
  const std::int64_t count = 7;
  const float as_float = 7;
  Prefix("module.");
  sources_.push_back({"n_averaged", DType::kInt64, Shape(), &count});
  sources_.push_back({"module.bn1.num_batches_tracked", DType::kInt64, Shape(), &count});
  sources_.push_back({"module.layer1.0.bn1.num_batches_tracked", DType::kFloat32, {1}, &as_float});
  Load();
  ExpectTaken();
}

TEST_F(ForeignWeightsTest, ValuesOf16BitsAreWidenedWithANote) {
  const auto half = [](int exponent) { return static_cast<std::uint16_t>((15 + exponent) << 10); };
  const auto brain = [](int exponent) { return static_cast<std::uint16_t>((127 + exponent) << 7); };
  Narrow(DType::kFloat16, half);
  Load();
  ExpectTaken();
  EXPECT_THAT(log_text_.str(), HasSubstr(std::to_string(tensors_.size()) + " tensors of F16 in"));
  Reset();
  Narrow(DType::kBFloat16, brain);
  Load();
  ExpectTaken();
  EXPECT_THAT(log_text_.str(), HasSubstr(std::to_string(tensors_.size()) + " tensors of BF16 in"));
  Reset();
  // Some of each, with a prefix, as autocast to one type leaves the statistics.
  Narrow(DType::kFloat16, half);
  sources_[1] = SourcesOf(tensors_)[1];
  Prefix("module.");
  Load();
  ExpectTaken();
  EXPECT_THAT(log_text_.str(),
              HasSubstr(std::to_string(tensors_.size() - 1) + " tensors of F16 in"));
}

TEST_F(ForeignWeightsTest, AnInfinityOf16BitsIsRejected) {
  Narrow(DType::kFloat16,
         [](int exponent) { return static_cast<std::uint16_t>(exponent == 3 ? 0x7c00 : 0x3c00); });
  EXPECT_THAT(Rejection(), HasSubstr("conv1.weight has the value inf"));
}

TEST_F(ForeignWeightsTest, ABackboneWithoutAHeadNeedsANewOne) {
  std::erase_if(sources_, [](const TensorReader& s) { return s.name.starts_with("fc."); });
  Prefix("backbone.");
  const float value = 1;
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("it has no last layer"), HasSubstr("give --new_head")));
  fs::remove(config_.init_from);
  sources_.push_back({"head.fc.weight", DType::kFloat32, {1}, &value});
  EXPECT_THAT(Rejection(),
              AllOf(HasSubstr("tensor 'head.fc.weight' has not the prefix 'backbone.'"),
                    HasSubstr("give --new_head")));
  fs::remove(config_.init_from);
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Rejection(), Not(HasSubstr("--new_head")));
  config_.mode = RunMode::kTrain;
  config_.new_head = true;
  fs::remove(config_.init_from);
  Load();
  ExpectTaken(/*with_head=*/false);
  EXPECT_THAT(log_text_.str(), HasSubstr("1 tensor without it left out, the first is head.fc"));
}

TEST_F(ForeignWeightsTest, SeveralNetworksInOneFileAreRejected) {
  Prefix("student.");
  for (TensorReader source : SourcesOf(tensors_)) {
    source.name = "teacher." + source.name;
    sources_.push_back(source);
  }
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("several networks, with 'student.' and 'teacher.'"),
                                 Not(HasSubstr("--model_dir"))));
}

TEST_F(ForeignWeightsTest, TheAdviceIsAboutTheFile) {
  for (TensorReader& source : sources_) source.name = "resnet.embedder/" + source.name.substr(2);
  std::erase_if(sources_, [](const TensorReader& s) { return s.name.ends_with("conv1.weight"); });
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("give weights of a ResNet with torchvision's names"),
                                 Not(HasSubstr("--model_dir"))));
  Reset();
  Find("conv1.weight").shape = Shape{8, 3, 49};
  EXPECT_THAT(Rejection(),
              AllOf(HasSubstr("it is of another network: give weights of a resnet_tiny"),
                    Not(HasSubstr("--model_dir"))));
  Reset();
  const float value = 1;
  const std::array<int, 4> depths = {3, 4, 23, 3};
  for (std::size_t layer = 0; layer < depths.size(); ++layer) {
    for (int block = 0; block < depths[layer]; ++block) {
      const std::string name =
          "layer" + std::to_string(layer + 1) + "." + std::to_string(block) + ".conv3.weight";
      std::erase_if(sources_, [&](const TensorReader& s) { return s.name == name; });
      sources_.push_back({name, DType::kFloat32, {1}, &value});
    }
  }
  EXPECT_THAT(Rejection(), AllOf(HasSubstr("another network: give --arch=resnet101"),
                                 Not(HasSubstr("--model_dir"))));
}

TEST_F(ForeignWeightsTest, DirectoriesAndPartsOfOtherProgramsAreNamed) {
  const fs::path directory = directory_.path() / "hub";
  fs::create_directory(directory);
  const auto rejection = [&](const fs::path& from) -> std::string {
    config_.init_from = from;
    try {
      InitializeFromFile({config_, network_, communicator_, *stream_, log_});
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(rejection(directory),
              HasSubstr("neither a file of weights nor the directory of a run"));
  std::ofstream(directory / "model.safetensors") << "x";
  EXPECT_THAT(rejection(directory), HasSubstr("give a file in it, such as " +
                                              (directory / "model.safetensors").string()));
  std::ofstream(directory / "model.ckpt-5.index") << "x";
  EXPECT_THAT(rejection(directory / "model.ckpt-5"), HasSubstr("a TensorFlow checkpoint"));
  EXPECT_THAT(rejection(directory / "model.ckpt-6"), HasSubstr("No such file"));
}

}  // namespace
}  // namespace trainer
