// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/network.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/philox.h"

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

Network::Network(Backend& backend, NetworkDefinition plan, const AllocateMemory& allocate_gradients)
    : backend_(backend), plan_(std::move(plan)) {
  AllocateParameters(allocate_gradients);
  AllocateArena();
  BindBlocks();
}

void Network::AllocateArena() {
  arena_ = backend_.AllocateDevice(plan_.arena.total_bytes());
  for (const NetworkDefinition::Activation& activation : plan_.activations) {
    const auto at = [&](int id) { return arena_.data() + plan_.arena.offset(id); };
    activations_.push_back({activation.desc, at(activation.value_id)});
    gradients_of_activations_.push_back({activation.desc, at(activation.gradient_id)});
  }
}

void Network::AllocateParameters(const AllocateMemory& allocate_gradients) {
  const auto gradients = [&](std::size_t bytes) {
    return allocate_gradients ? allocate_gradients(bytes) : backend_.AllocateDevice(bytes);
  };
  const std::size_t bytes = plan_.layout.elements * sizeof(float);
  weights_ = backend_.AllocateDevice(bytes);
  gradients_ = gradients(bytes);
  momentum_ = backend_.AllocateDevice(bytes);
  statistics_ = backend_.AllocateDevice(plan_.layout.statistic_elements * sizeof(float));
  if (has_ema()) {
    ema_weights_ = backend_.AllocateDevice(bytes);
    ema_statistics_ = backend_.AllocateDevice(statistics_.bytes());
  }
  if (backend_.compute_type() == DType::kFloat32) return;
  const std::size_t compute_bytes = plan_.layout.elements * SizeOf(backend_.compute_type());
  compute_weights_ = backend_.AllocateDevice(compute_bytes);
  compute_gradients_ = gradients(compute_bytes);
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
    for (std::size_t i = plan_.layout.first_of_block[index];
         i < plan_.layout.first_of_block[index + 1]; ++i) {
      result.push_back(BindingOf(plan_.layout.parameters[i]));
    }
    return result;
  };
  plan_.stem->Bind(plan_.arena, arena_.data(), bindings(0));
  for (int b = 1; b < block_count() - 1; ++b) {
    plan_.bodies[static_cast<std::size_t>(b - 1)].block->Bind(plan_.arena, arena_.data(),
                                                              bindings(b));
  }
  plan_.head->Bind(plan_.arena, arena_.data(), bindings(block_count() - 1));
}

const Buffer& Network::BufferOf(Part part, bool statistic) const {
  if (part == Part::kValue) return statistic ? statistics_ : weights_;
  if (part == Part::kMomentum) {
    DDL_CHECK(!statistic);
    return momentum_;
  }
  DDL_CHECK(has_ema());
  return statistic ? ema_statistics_ : ema_weights_;
}

Tensor Network::TensorOf(Part part, const Parameter& parameter) const {
  const Buffer& buffer = BufferOf(part, parameter.spec.statistic);
  return Fp32Tensor(parameter, reinterpret_cast<float*>(buffer.data()));
}

void Network::InitEma(Stream& stream) {
  if (!has_ema()) return;
  backend_.CopyOnDevice(ema_weights_.data(), weights_.data(), weights_.bytes(), stream);
  backend_.CopyOnDevice(ema_statistics_.data(), statistics_.data(), statistics_.bytes(), stream);
}

void Network::UpdateEma(const UpdateSums* sums, Stream& stream) {
  if (!has_ema()) return;
  const auto share = static_cast<float>(1 - plan_.spec.ema);
  const auto move = [&](const Buffer& values, const Buffer& ema) {
    backend_.MoveAverage(reinterpret_cast<const float*>(values.data()), share, sums,
                         reinterpret_cast<float*>(ema.data()), values.bytes() / sizeof(float),
                         stream);
  };
  move(weights_, ema_weights_);
  move(statistics_, ema_statistics_);
}

void Network::Forward(Mode mode, const InputBatch& batch, LossSums* loss_sums, Stream& stream) {
  last_mode_ = mode;
  plan_.stem->Forward(mode, batch, activations_.front(), stream);
  for (std::size_t b = 0; b < plan_.bodies.size(); ++b) {
    plan_.bodies[b].block->Forward(mode, activations_[b], activations_[b + 1], stream);
  }
  plan_.head->Forward(mode, activations_.back(), batch, loss_sums, stream);
}

void Network::Backward(Stream& stream, const GradientsReady& gradients_ready) {
  DDL_CHECK(last_mode_ != Mode::kInference);
  const auto done = [&](int block) {
    gradients_ready(plan_.layout.complete_from[static_cast<std::size_t>(block)]);
  };
  plan_.head->Backward(activations_.back(), gradients_of_activations_.back(), stream);
  done(block_count() - 1);
  for (std::size_t b = plan_.bodies.size(); b-- > 0;) {
    plan_.bodies[b].block->Backward(last_mode_, activations_[b], activations_[b + 1],
                                    gradients_of_activations_[b + 1], gradients_of_activations_[b],
                                    stream);
    done(static_cast<int>(b) + 1);
  }
  plan_.stem->Backward(last_mode_, activations_.front(), gradients_of_activations_.front(), stream);
  done(0);
}

std::vector<float> Network::Export(Part part, const Parameter& parameter, Stream& stream) const {
  return ExportTensor(TensorOf(part, parameter), parameter, stream);
}

void Network::Export(Part part, const Parameter& parameter, float* dst, Stream& stream) const {
  backend_.Export(TensorOf(part, parameter), dst, stream);
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

namespace {

constexpr std::size_t kExact = std::size_t{1} << 24;  // fp32 holds the whole numbers up to this

// A layout that only the back end knows shows itself by what becomes of numbers that count up.
std::string OrderOf(const TensorDesc& desc, Backend& backend, Stream& stream) {
  if (desc.layout == Layout::kRowMajor) return "row by row";
  if (desc.layout == Layout::kChannelsLast) return "channels last";
  DDL_CHECK(desc.dtype == DType::kFloat32);
  std::vector<float> places(desc.bytes / sizeof(float));
  DDL_CHECK(places.size() <= kExact);
  std::iota(places.begin(), places.end(), 0.0F);
  const Buffer memory = backend.AllocateDevice(desc.bytes);
  backend.CopyToDevice(memory.data(), places.data(), desc.bytes, stream);
  std::vector<float> elements(static_cast<std::size_t>(desc.shape.elements()));
  backend.Export({desc, memory.data()}, elements.data(), stream);
  Fingerprint order;
  for (const float place : elements) order.Add(static_cast<std::uint64_t>(place));
  return "in the order " + order.hex();
}

}  // namespace

std::vector<ConsistencyItem> WeightLayout(const Network& network, Backend& backend,
                                          Stream& stream) {
  std::vector<ConsistencyItem> items;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) continue;
    items.push_back({parameter.name, parameter.name + " from element " +
                                         std::to_string(parameter.begin) + " on, " +
                                         OrderOf(parameter.spec.desc, backend, stream)});
  }
  return items;
}

namespace {

constexpr double kDeviationOfNormalCutAt2 = 0.87962566103423978;

double Fan(const Shape& shape, WeightInit weight_init) {
  DDL_CHECK(shape.rank() == 2 || shape.rank() == 4);
  const std::int64_t window = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  return static_cast<double>((weight_init == WeightInit::kFanIn ? shape[1] : shape[0]) * window);
}

}  // namespace

std::vector<float> InitialValues(const ParameterSpec& spec, std::uint64_t number,
                                 std::uint64_t seed, WeightInit weight_init) {
  const auto count = static_cast<std::size_t>(spec.shape.elements());
  if (spec.init != Init::kVarianceScaling) {
    return std::vector<float>(count, spec.init == Init::kOnes ? 1.0F : 0.0F);
  }
  const double stddev = std::sqrt(2.0 / Fan(spec.shape, weight_init)) / kDeviationOfNormalCutAt2;
  Random random(seed, RandomPurpose::kInit, number);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stddev * random.TruncatedNormal());
  return values;
}

void Initialize(Network& network, const Initialization& start, Stream& stream) {
  std::uint64_t number = 0;
  for (const Parameter& parameter : network.parameters()) {
    std::vector<float> values =
        InitialValues(parameter.spec, number++, start.seed, start.weight_init);
    // The batch norm at the end of a bottleneck's residual branch has this name.
    if (start.zero_init_residual && parameter.name.ends_with("bn3.weight")) {
      std::fill(values.begin(), values.end(), 0.0F);
    }
    network.Import(Network::Part::kValue, parameter, values, stream);
  }
}

}  // namespace trainer
