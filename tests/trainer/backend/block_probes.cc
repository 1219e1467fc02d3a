// SPDX-License-Identifier: Apache-2.0
//
// Stem, bottleneck and head as probes.

#include <optional>
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

class BottleneckProbe final : public Probe {
 public:
  BottleneckProbe(Device& device, Mode mode, const Shape& src,
                  const std::vector<BottleneckPlan>& plans, const JoinBlocks& join)
      : device_(device), mode_(mode) {
    Add(device.Images(src));
    std::vector<Block*> blocks;
    for (const BottleneckPlan& plan : plans) {
      blocks_.push_back(
          device.backend().MakeBottleneck({values_.back().desc, plan.mid, plan.out, plan.stride}));
      if (!blocks.empty()) join(*blocks_.back(), blocks_[blocks.size() - 1]->end());
      blocks.push_back(blocks_.back().get());
      Add(blocks_.back()->dst());
    }
    memory_.emplace(device, blocks);
  }

  std::vector<Input> inputs() const override {
    std::vector<Input> inputs = memory_->inputs();
    inputs.push_back({"src", values_.front().desc.shape});
    return inputs;
  }

  Values Forward(const Values& inputs) override {
    memory_->Import(inputs);
    device_.Import(inputs.at("src"), values_.front());
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      device_.Poison(values_[i + 1].data, values_[i + 1].desc.bytes);
      blocks_[i]->Forward(mode_, values_[i], values_[i + 1], device_.stream());
    }
    Values values{{"dst", device_.Export(values_.back())}};
    memory_->ExportStatistics(values);
    return values;
  }

  Values Backward(const Floats& diff_dst) override {
    if (mode_ == Mode::kInference) return {};
    memory_->PoisonBetweenForwardAndBackward();
    device_.Import(diff_dst, gradients_.back());
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      device_.Poison(gradients_[i].data, gradients_[i].desc.bytes);
      blocks_[i]->Backward(mode_, values_[i], values_[i + 1], gradients_[i + 1], gradients_[i],
                           device_.stream());
    }
    Values gradients{{"src", device_.Export(gradients_.front())}};
    memory_->ExportGradients(gradients);
    return gradients;
  }

 private:
  void Add(const TensorDesc& desc) {
    values_.push_back(device_.Make(desc));
    gradients_.push_back(device_.Make(desc));
  }

  Device& device_;
  Mode mode_;
  std::vector<std::unique_ptr<Bottleneck>> blocks_;
  std::optional<BlockMemory> memory_;
  std::vector<Tensor> values_, gradients_;  // before each block, and behind the last
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

std::unique_ptr<Probe> MakeBottleneckProbe(Device& device, Mode mode, const Shape& src,
                                           const std::vector<BottleneckPlan>& plans,
                                           const JoinBlocks& join) {
  return std::make_unique<BottleneckProbe>(device, mode, src, plans, join);
}

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
    // Without a step, for which finite differences take too long: those of ResNet-50's first layer,
    // of which some back ends know more.
    struct BottleneckCase {
      const char* name;
      Shape src;
      std::vector<BottleneckPlan> plans;
      double step = 1.0 / 1024;
    };
    const BottleneckCase bottlenecks[] = {
        {"bottleneck_identity", {2, 32, 6, 5}, {{8, 32, 1}}},
        {"bottleneck_identity_odd", {3, 20, 3, 5}, {{5, 20, 1}}},
        {"bottleneck_widening", {2, 16, 5, 5}, {{16, 64, 1}}},
        {"bottleneck_stride2", {2, 32, 6, 8}, {{16, 64, 2}}},
        {"bottleneck_stride2_odd", {4, 12, 7, 5}, {{6, 24, 2}}},
        {"bottleneck_stride2_same_channels", {2, 24, 4, 6}, {{6, 24, 2}}},
        {"bottleneck_of_64", {1, 256, 3, 5}, {{64, 256, 1}}, 0},
        {"bottleneck_to_256", {3, 64, 3, 3}, {{64, 256, 1}}, 0},
        {"bottlenecks_identity", {2, 32, 6, 5}, {{8, 32, 1}, {8, 32, 1}, {8, 32, 1}}, 0},
        {"bottlenecks_odd", {4, 12, 5, 5}, {{5, 20, 1}, {5, 20, 1}, {6, 24, 2}, {6, 24, 1}}, 0},
        {"bottlenecks_of_64", {2, 64, 3, 5}, {{64, 256, 1}, {64, 256, 1}, {128, 256, 2}}, 0},
    };
    for (const BottleneckCase& c : bottlenecks) {
      cases.push_back(
          {c.name + Suffix(mode),
           [c, mode](Device& device) { return MakeBottleneckProbe(device, mode, c.src, c.plans); },
           10 * static_cast<double>(c.plans.size()), c.step, true});
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
