// SPDX-License-Identifier: Apache-2.0
//
// Stem, bottleneck and head as probes.

#include <utility>

#include "tests/trainer/backend/block_memory.h"

namespace trainer {
namespace {

// Mixup's, another one for each sample.
Floats Weights(std::int64_t samples) {
  Floats weights;
  for (std::int64_t n = 0; n < samples; ++n) {
    weights.push_back(0.75F - 0.25F * static_cast<float>(n % 3));
  }
  return weights;
}

class StemProbe final : public Probe {
 public:
  StemProbe(Device& device, const StemSpec& spec, Mode mode)
      : device_(device),
        mode_(mode),
        stem_(device.backend().MakeStem(spec)),
        memory_(device, *stem_),
        dst_(device.Make(stem_->dst())),
        diff_dst_(device.Make(stem_->dst())) {
    Random random(3, RandomPurpose::kSynthetic, 0);
    std::vector<std::uint8_t> pixels(
        static_cast<std::size_t>(spec.batch * spec.height * spec.width * 3));
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.Below(256));
    std::vector<std::uint8_t> mirror(static_cast<std::size_t>(spec.batch));
    for (std::size_t n = 0; n < mirror.size(); ++n) mirror[n] = n % 2;
    batch_.pixels = device.Upload(pixels);
    batch_.mirror = device.Upload(mirror);
    batch_.lambda = device.Upload(Weights(spec.batch));
    batch_.loss = device.Upload(std::vector<LossParameters>{{.valid = spec.batch}});
  }

  std::vector<Input> inputs() const override { return memory_.inputs(); }

  Values Forward(const Values& inputs) override {
    memory_.Import(inputs);
    device_.Poison(dst_.data, dst_.desc.bytes);
    stem_->Forward(mode_, batch_, dst_, device_.stream());
    Values values{{"dst", device_.Export(dst_)}};
    memory_.ExportStatistics(values);
    return values;
  }

  Values Backward(const Floats& diff_dst) override {
    if (mode_ == Mode::kInference) return {};
    memory_.PoisonBetweenForwardAndBackward();
    device_.Import(diff_dst, diff_dst_);
    stem_->Backward(mode_, dst_, diff_dst_, device_.stream());
    Values gradients;
    memory_.ExportGradients(gradients);
    return gradients;
  }

 private:
  Device& device_;
  Mode mode_;
  std::unique_ptr<Stem> stem_;
  BlockMemory memory_;
  InputBatch batch_;
  Tensor dst_, diff_dst_;
};

struct BottleneckCase {
  Shape src;
  std::int64_t mid, out, stride;
  Mode mode;
};

class BottleneckProbe final : public Probe {
 public:
  BottleneckProbe(Device& device, const BottleneckCase& c)
      : device_(device),
        mode_(c.mode),
        src_(device.Make(device.Images(c.src))),
        block_(device.backend().MakeBottleneck({src_.desc, c.mid, c.out, c.stride})),
        memory_(device, *block_),
        dst_(device.Make(block_->dst())),
        diff_src_(device.Make(src_.desc)),
        diff_dst_(device.Make(block_->dst())) {}

  std::vector<Input> inputs() const override {
    std::vector<Input> inputs = memory_.inputs();
    inputs.push_back({"src", src_.desc.shape});
    return inputs;
  }

  Values Forward(const Values& inputs) override {
    memory_.Import(inputs);
    device_.Import(inputs.at("src"), src_);
    device_.Poison(dst_.data, dst_.desc.bytes);
    block_->Forward(mode_, src_, dst_, device_.stream());
    Values values{{"dst", device_.Export(dst_)}};
    memory_.ExportStatistics(values);
    return values;
  }

  Values Backward(const Floats& diff_dst) override {
    if (mode_ == Mode::kInference) return {};
    memory_.PoisonBetweenForwardAndBackward();
    device_.Import(diff_dst, diff_dst_);
    device_.Poison(diff_src_.data, diff_src_.desc.bytes);
    block_->Backward(mode_, src_, dst_, diff_dst_, diff_src_, device_.stream());
    Values gradients{{"src", device_.Export(diff_src_)}};
    memory_.ExportGradients(gradients);
    return gradients;
  }

 private:
  Device& device_;
  Mode mode_;
  Tensor src_;
  std::unique_ptr<Bottleneck> block_;
  BlockMemory memory_;
  Tensor dst_, diff_src_, diff_dst_;
};

// "dst" is the sum of the losses, which a loss scale of N times diff_dst makes Backward's subject.
class HeadProbe final : public Probe {
 public:
  HeadProbe(Device& device, const Shape& src, Mode mode)
      : device_(device),
        mode_(mode),
        src_(device.Make(device.Images(src))),
        head_(device.backend().MakeHead({src_.desc, /*classes=*/7, /*label_smoothing=*/0.1F})),
        memory_(device, *head_),
        diff_src_(device.Make(src_.desc)),
        sums_(static_cast<LossSums*>(device.Scratch(sizeof(LossSums)))) {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(src[0]));
    for (std::size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<int>(3 * n % 7);
    batch_.labels = device.Upload(labels);
    batch_.lambda = device.Upload(Weights(src[0]));
    const LossParameters loss{.valid = src[0] > 1 ? src[0] - 1 : 1,
                              .diff_scale = static_cast<float>(src[0])};
    batch_.loss = device.Upload(std::vector<LossParameters>{loss});
  }

  std::vector<Input> inputs() const override {
    std::vector<Input> inputs = memory_.inputs();
    inputs.push_back({"src", src_.desc.shape});
    return inputs;
  }

  Values Forward(const Values& inputs) override {
    memory_.Import(inputs);
    device_.Import(inputs.at("src"), src_);
    device_.backend().Zero(sums_, sizeof(LossSums), device_.stream());
    head_->Forward(mode_, src_, batch_, sums_, device_.stream());
    const LossSums sums = device_.Download<LossSums>(sums_, 1).front();
    return {{"dst", {sums.loss}},
            {"counts", {sums.top1, sums.top5, sums.samples}},
            {"logits", device_.Export(head_->logits())}};
  }

  Values Backward(const Floats& diff_dst) override {
    if (mode_ == Mode::kInference) return {};
    memory_.PoisonBetweenForwardAndBackward();
    device_.Poison(diff_src_.data, diff_src_.desc.bytes);
    head_->Backward(src_, diff_src_, device_.stream());
    Values gradients{{"src", device_.Export(diff_src_)}};
    memory_.ExportGradients(gradients);
    for (auto& [name, gradient] : gradients) {
      for (float& value : gradient) value *= diff_dst.front();
    }
    return gradients;
  }

 private:
  Device& device_;
  Mode mode_;
  Tensor src_;
  std::unique_ptr<Head> head_;
  BlockMemory memory_;
  InputBatch batch_;
  Tensor diff_src_;
  LossSums* sums_;
};

std::string Suffix(Mode mode) {
  return mode == Mode::kTraining ? "" : mode == Mode::kFrozen ? "_frozen" : "_inference";
}

}  // namespace

std::vector<ProbeCase> BlockCases() {
  std::vector<ProbeCase> cases;
  for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
    const std::pair<const char*, StemSpec> stems[] = {{"stem", {2, 18, 22, 16}},
                                                      {"stem_odd", {1, 13, 9, 10}},
                                                      {"stem_wide", {2, 33, 47, 60}},
                                                      {"stem_wide_of_one", {1, 32, 32, 64}}};
    for (const auto& [name, spec] : stems) {
      // Finite differences of so many filters take too long.
      const bool is_differentiated = mode != Mode::kInference && spec.out_channels <= 16;
      cases.push_back({name + Suffix(mode),
                       [spec = spec, mode](Device& device) {
                         return std::make_unique<StemProbe>(device, spec, mode);
                       },
                       5, is_differentiated ? 1.0 / 1024 : 0, true});
    }
    const std::pair<const char*, BottleneckCase> bottlenecks[] = {
        {"bottleneck_identity", {{2, 32, 6, 5}, 8, 32, 1, mode}},
        {"bottleneck_identity_odd", {{3, 20, 3, 5}, 5, 20, 1, mode}},
        {"bottleneck_widening", {{2, 16, 5, 5}, 16, 64, 1, mode}},
        {"bottleneck_stride2", {{2, 32, 6, 8}, 16, 64, 2, mode}},
        {"bottleneck_stride2_odd", {{4, 12, 7, 5}, 6, 24, 2, mode}},
        {"bottleneck_stride2_same_channels", {{2, 24, 4, 6}, 6, 24, 2, mode}},
    };
    for (const auto& [name, c] : bottlenecks) {
      cases.push_back(
          {name + Suffix(mode),
           [c = c](Device& device) { return std::make_unique<BottleneckProbe>(device, c); }, 10,
           1.0 / 1024, true});
    }
    // Those of ResNet-50's first layer, of which some back ends know more.
    const std::pair<const char*, BottleneckCase> first_layer[] = {
        {"bottleneck_of_64", {{1, 256, 3, 5}, 64, 256, 1, mode}},
        {"bottleneck_to_256", {{3, 64, 3, 3}, 64, 256, 1, mode}},
    };
    for (const auto& [name, c] : first_layer) {
      cases.push_back(
          {name + Suffix(mode),
           [c = c](Device& device) { return std::make_unique<BottleneckProbe>(device, c); }, 10,
           /*step=*/0, true});
    }
    const std::pair<const char*, Shape> heads[] = {{"head", {4, 16, 3, 2}},
                                                   {"head_of_one", {1, 9, 1, 1}}};
    for (const auto& [name, src] : heads) {
      cases.push_back({name + Suffix(mode),
                       [src = src, mode](Device& device) {
                         return std::make_unique<HeadProbe>(device, src, mode);
                       },
                       2, mode == Mode::kInference ? 0 : 1.0 / 64});
    }
  }
  return cases;
}

}  // namespace trainer
