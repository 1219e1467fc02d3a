// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/network.h"

#include <array>
#include <cstdio>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

Tensor Fp32Tensor(const Parameter& parameter, float* memory) {
  TensorDesc desc = parameter.spec.desc;
  desc.dtype = DType::kFloat32;
  desc.bytes = parameter.count * sizeof(float);
  return {desc, memory + parameter.begin};
}

Tensor GradientIn(const FlatGradients& gradients, const Parameter& parameter) {
  if (parameter.begin < gradients.compute_from) return Fp32Tensor(parameter, gradients.fp32);
  const TensorDesc& desc = parameter.spec.desc;
  return {desc, static_cast<std::byte*>(gradients.compute) + parameter.begin * SizeOf(desc.dtype)};
}

}  // namespace

Network::Network(Backend& backend, const NetworkSpec& spec) : backend_(backend), spec_(spec) {
  DDL_CHECK(spec.batch > 0 && spec.classes > 1);
  MakeBlocks();
  AllocateParameters();
  PlanArena();
  BindBlocks();
}

void Network::MakeBlocks() {
  const Architecture& architecture = FindArchitecture(spec_.architecture);
  stem_ = backend_.MakeStem({spec_.batch, spec_.height, spec_.width, architecture.stem_channels});
  TensorDesc src = stem_->dst();
  for (const BottleneckPlace& place : BottlenecksOf(architecture)) {
    auto block =
        backend_.MakeBottleneck({src, place.mid_channels, place.out_channels, place.stride});
    src = block->dst();
    bodies_.push_back({std::move(block), place.name});
  }
  head_ = backend_.MakeHead({src, spec_.classes, spec_.label_smoothing});

  std::vector<BlockParameters> blocks;
  blocks.push_back({"", stem_->parameters()});
  for (const Body& body : bodies_) blocks.push_back({body.name + ".", body.block->parameters()});
  blocks.push_back({"", head_->parameters()});
  layout_ = LayOutParameters(blocks);
}

// The clock of a step: block b runs forward at b and backward at 2B-1-b.
void Network::PlanArena() {
  const int count = block_count();
  const auto times = [count](int block) { return BlockTimes{block, 2 * count - 1 - block}; };

  stem_->Reserve(times(0), "stem", plan_);
  for (int b = 1; b < count - 1; ++b) {
    const Body& body = bodies_[static_cast<std::size_t>(b - 1)];
    body.block->Reserve(times(b), body.name, plan_);
  }
  head_->Reserve(times(count - 1), "head", plan_);

  std::vector<std::pair<int, int>> ids;
  for (int b = 0; b < count - 1; ++b) {
    const TensorDesc& desc =
        b == 0 ? stem_->dst() : bodies_[static_cast<std::size_t>(b - 1)].block->dst();
    const std::string name = b == 0 ? "stem" : bodies_[static_cast<std::size_t>(b - 1)].name;
    const int backward = times(b).backward;
    ids.emplace_back(plan_.Reserve(name + " dst", desc.bytes, times(b).forward, backward),
                     plan_.Reserve(name + " diff_dst", desc.bytes, backward - 1, backward));
    activations_.push_back({desc, nullptr});
  }
  plan_.Solve();

  CheckArenaFits();
  arena_ = backend_.AllocateDevice(plan_.total_bytes());
  gradients_of_activations_ = activations_;
  for (std::size_t b = 0; b < ids.size(); ++b) {
    activations_[b].data = arena_.data() + plan_.offset(ids[b].first);
    gradients_of_activations_[b].data = arena_.data() + plan_.offset(ids[b].second);
  }
}

// A device's allocator knows only that it has too little.
void Network::CheckArenaFits() const {
  const std::size_t needed = plan_.total_bytes();
  const std::size_t free = backend_.free_bytes();
  if (needed <= free) return;
  const auto gigabytes = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e9; };
  // Nearly all of it grows with the batch.
  const auto share = static_cast<double>(free) / static_cast<double>(needed);
  const auto fits = static_cast<std::int64_t>(static_cast<double>(spec_.batch) * share);
  const std::string advice = fits > 0 ? "--batch_size=" + std::to_string(fits) + " may fit"
                                      : "not one image fits: use a smaller --image_size";
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "a batch of %lld needs %.1f GB beside the weights, %.1f GB are free: %s",
                static_cast<long long>(spec_.batch), gigabytes(needed), gigabytes(free),
                advice.c_str());
  throw Error(EX_OSERR, text.data());
}

void Network::AllocateParameters() {
  const std::size_t bytes = layout_.elements * sizeof(float);
  weights_ = backend_.AllocateDevice(bytes);
  gradients_ = backend_.AllocateDevice(bytes);
  momentum_ = backend_.AllocateDevice(bytes);
  statistics_ = backend_.AllocateDevice(layout_.statistic_elements * sizeof(float));
  if (backend_.compute_type() == DType::kFloat32) return;
  const std::size_t compute_bytes = layout_.elements * SizeOf(backend_.compute_type());
  compute_weights_ = backend_.AllocateDevice(compute_bytes);
  compute_gradients_ = backend_.AllocateDevice(compute_bytes);
}

ParameterBinding Network::BindingOf(const Parameter& parameter) const {
  if (parameter.spec.statistic) return {TensorOf(Part::kValue, parameter), {}};
  const Tensor gradient = GradientIn(gradients(), parameter);
  if (!IsCopied(parameter)) return {TensorOf(Part::kValue, parameter), gradient};
  const TensorDesc& desc = parameter.spec.desc;
  DDL_CHECK(desc.dtype == backend_.compute_type());
  return {{desc, compute_weights_.data() + parameter.begin * SizeOf(desc.dtype)}, gradient};
}

void Network::BindBlocks() {
  const auto bindings = [this](int block) {
    const auto index = static_cast<std::size_t>(block);
    std::vector<ParameterBinding> result;
    for (std::size_t i = layout_.first_of_block[index]; i < layout_.first_of_block[index + 1];
         ++i) {
      result.push_back(BindingOf(layout_.parameters[i]));
    }
    return result;
  };
  stem_->Bind(plan_, arena_.data(), bindings(0));
  for (int b = 1; b < block_count() - 1; ++b) {
    bodies_[static_cast<std::size_t>(b - 1)].block->Bind(plan_, arena_.data(), bindings(b));
  }
  head_->Bind(plan_, arena_.data(), bindings(block_count() - 1));
}

Tensor Network::TensorOf(Part part, const Parameter& parameter) const {
  DDL_CHECK(part == Part::kValue || !parameter.spec.statistic);
  const Buffer& buffer = part == Part::kMomentum    ? momentum_
                         : parameter.spec.statistic ? statistics_
                                                    : weights_;
  return Fp32Tensor(parameter, reinterpret_cast<float*>(buffer.data()));
}

void Network::Forward(Mode mode, const InputBatch& batch, LossSums* loss_sums, Stream& stream) {
  last_mode_ = mode;
  stem_->Forward(mode, batch, activations_.front(), stream);
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    bodies_[b].block->Forward(mode, activations_[b], activations_[b + 1], stream);
  }
  head_->Forward(mode, activations_.back(), batch, loss_sums, stream);
}

void Network::Backward(Stream& stream, const GradientsReady& gradients_ready) {
  DDL_CHECK(last_mode_ != Mode::kInference);
  const auto done = [&](int block) {
    gradients_ready(layout_.complete_from[static_cast<std::size_t>(block)]);
  };
  head_->Backward(activations_.back(), gradients_of_activations_.back(), stream);
  done(block_count() - 1);
  for (std::size_t b = bodies_.size(); b-- > 0;) {
    bodies_[b].block->Backward(last_mode_, activations_[b], activations_[b + 1],
                               gradients_of_activations_[b + 1], gradients_of_activations_[b],
                               stream);
    done(static_cast<int>(b) + 1);
  }
  stem_->Backward(last_mode_, activations_.front(), gradients_of_activations_.front(), stream);
  done(0);
}

std::vector<float> Network::Export(Part part, const Parameter& parameter, Stream& stream) const {
  return ExportTensor(TensorOf(part, parameter), parameter, stream);
}

std::vector<float> Network::ExportGradient(const FlatGradients& gradients,
                                           const Parameter& parameter, Stream& stream) const {
  return ExportTensor(GradientIn(gradients, parameter), parameter, stream);
}

std::vector<float> Network::ExportTensor(const Tensor& tensor, const Parameter& parameter,
                                         Stream& stream) const {
  std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
  backend_.Export(tensor, values.data(), stream);
  return values;
}

void Network::Import(Part part, const Parameter& parameter, std::span<const float> values,
                     Stream& stream) {
  DDL_CHECK(values.size() == static_cast<std::size_t>(parameter.spec.shape.elements()));
  backend_.Import(values.data(), TensorOf(part, parameter), stream);
  if (part == Part::kValue && IsCopied(parameter)) {
    backend_.Import(values.data(), BindingOf(parameter).value, stream);
  }
}

std::vector<std::string> Network::DescribeMemory() const {
  std::vector<std::string> rows;
  const auto add = [&rows](const std::string& name, std::size_t bytes, const std::string& more) {
    char row[160];
    std::snprintf(row, sizeof row, "%-32s %14zu bytes%s", name.c_str(), bytes, more.c_str());
    rows.emplace_back(row);
  };
  add("weights", weights_.bytes(), "");
  add("gradients", gradients_.bytes(), "");
  add("momentum", momentum_.bytes(), "");
  add("statistics", statistics_.bytes(), "");
  if (compute_weights_.bytes() > 0) {
    add("weights, compute type", compute_weights_.bytes(), "");
    add("gradients, compute type", compute_gradients_.bytes(), "");
  }
  add("arena", arena_.bytes(), "");
  for (const MemoryPlan::Request& request : plan_.requests()) {
    add("  " + request.name, request.bytes,
        "  at " + std::to_string(request.offset) + ", in use from " +
            std::to_string(request.first_use) + " to " + std::to_string(request.last_use));
  }
  return rows;
}

}  // namespace trainer
