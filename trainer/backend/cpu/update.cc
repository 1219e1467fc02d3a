// SPDX-License-Identifier: Apache-2.0
//
// The parameters are cut into pieces of a fixed size, whatever the number of threads; each piece
// has its own partial sum, and those are added up in order: the bits depend on neither timing nor
// threads.

#include <algorithm>
#include <cmath>
#include <span>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/loops.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kPieceElements = 16384;  // what is read and written fits a core's L2 cache

float Total(std::span<const float> sums) {
  double total = 0;
  for (const float sum : sums) total += sum;
  return static_cast<float>(total);
}

// The pieces, and what is summed over each.
class Pieces {
 public:
  explicit Pieces(const std::vector<ParameterSegment>& segments) {
    for (const ParameterSegment& segment : segments) {
      first_of_segment_.push_back(pieces_.size());
      for (std::size_t at = 0; at < segment.count; at += kPieceElements) {
        pieces_.push_back(
            {segment.begin + at, std::min(kPieceElements, segment.count - at), segment.decay});
      }
    }
    first_of_segment_.push_back(pieces_.size());
    squares_.resize(pieces_.size());
    gradient_squares_.resize(pieces_.size());
  }

  std::size_t count() const { return pieces_.size(); }
  std::size_t segments() const { return first_of_segment_.size() - 1; }
  std::size_t first_of(std::size_t segment) const { return first_of_segment_[segment]; }
  const ParameterSegment& operator[](std::size_t index) const { return pieces_[index]; }

  // Of piece `index`, before it is updated.
  void Sum(std::size_t index, const float* weight, const float* gradient) {
    const ParameterSegment& piece = pieces_[index];
    squares_[index] = piece.decay ? loops_.sum_of_squares(weight + piece.begin, piece.count) : 0;
    gradient_squares_[index] = loops_.sum_of_squares(gradient + piece.begin, piece.count);
  }
  float Squares(std::size_t segment) const { return Total(OfSegment(squares_, segment)); }
  float GradientSquares(std::size_t segment) const {
    return Total(OfSegment(gradient_squares_, segment));
  }
  UpdateSums Sums(bool is_used) const {
    return {Total(squares_), is_used ? 0.0F : 1.0F, Total(gradient_squares_)};
  }

  bool AllFinite(const float* gradient) const {
    bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      finite = loops_.all_finite(gradient + pieces_[p].begin, pieces_[p].count) && finite;
    }
    return finite;
  }

 private:
  std::span<const float> OfSegment(const std::vector<float>& sums, std::size_t segment) const {
    const std::size_t first = first_of_segment_[segment];
    return std::span(sums).subspan(first, first_of_segment_[segment + 1] - first);
  }

  const detail::Loops& loops_ = detail::BestLoops();
  std::vector<ParameterSegment> pieces_;
  std::vector<std::size_t> first_of_segment_;  // places in pieces_; one more entry than segments
  std::vector<float> squares_;                 // one for each piece, of the weights with decay
  std::vector<float> gradient_squares_;
};

class CpuSgd final : public Optimizer {
 public:
  explicit CpuSgd(const std::vector<ParameterSegment>& segments) : pieces_(segments) {}

  void Step(const UpdateParameters* call_memory, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& /*stream*/) override {
    DDL_CHECK(compute_copy == nullptr && gradients.compute == nullptr);
    const float* gradient = gradients.fp32;
    const bool is_used = pieces_.AllFinite(gradient) && !FollowsOneLeftOut(*call_memory);
    const UpdateParameters call = *call_memory;
    UpdateParameters plain = call;
    plain.weight_decay = 0;
#pragma omp parallel for schedule(static)
    for (std::size_t p = 0; p < pieces_.count(); ++p) {
      const ParameterSegment& piece = pieces_[p];
      pieces_.Sum(p, weight, gradient);
      if (is_used) {
        loops_.update(piece.decay ? call : plain, piece.count, gradient + piece.begin,
                      weight + piece.begin, momentum + piece.begin);
      }
    }
    *sums = pieces_.Sums(is_used);
  }

 private:
  const detail::Loops& loops_ = detail::BestLoops();
  Pieces pieces_;
};

// As CpuSgd, but that all sums come before the first update.
class CpuLars final : public Optimizer {
 public:
  explicit CpuLars(const std::vector<ParameterSegment>& tensors)
      : pieces_(tensors), calls_(pieces_.count()) {}

  void Step(const UpdateParameters* call_memory, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& /*stream*/) override {
    DDL_CHECK(compute_copy == nullptr && gradients.compute == nullptr);
    const float* gradient = gradients.fp32;
    const bool is_used = pieces_.AllFinite(gradient) && !FollowsOneLeftOut(*call_memory);
#pragma omp parallel for schedule(static)
    for (std::size_t p = 0; p < pieces_.count(); ++p) pieces_.Sum(p, weight, gradient);
    *sums = pieces_.Sums(is_used);
    if (!is_used) return;
    for (std::size_t tensor = 0; tensor < pieces_.segments(); ++tensor) {
      const std::size_t first = pieces_.first_of(tensor);
      const std::size_t end = pieces_.first_of(tensor + 1);
      std::fill(calls_.begin() + static_cast<std::ptrdiff_t>(first),
                calls_.begin() + static_cast<std::ptrdiff_t>(end), CallOf(tensor, *call_memory));
    }
#pragma omp parallel for schedule(static)
    for (std::size_t p = 0; p < pieces_.count(); ++p) {
      const std::size_t begin = pieces_[p].begin;
      loops_.update_with_rated_momentum(calls_[p], pieces_[p].count, gradient + begin,
                                        weight + begin, momentum + begin);
    }
  }

 private:
  // With the ratio in its rate.
  UpdateParameters CallOf(std::size_t tensor, UpdateParameters call) const {
    const std::size_t first = pieces_.first_of(tensor);
    if (first == pieces_.count() || !pieces_[first].decay) {
      call.weight_decay = 0;
      return call;
    }
    const float of_weight = std::sqrt(pieces_.Squares(tensor));
    const float of_gradient = call.gradient_scale * std::sqrt(pieces_.GradientSquares(tensor));
    if (of_weight > 0 && of_gradient > 0) {
      call.learning_rate *= kLarsEta * of_weight / (of_gradient + call.weight_decay * of_weight);
    }
    return call;
  }

  const detail::Loops& loops_ = detail::BestLoops();
  Pieces pieces_;
  std::vector<UpdateParameters> calls_;  // one for each piece
};

}  // namespace

std::unique_ptr<Optimizer> MakeCpuOptimizer(OptimizerKind kind,
                                            std::vector<ParameterSegment> segments) {
  if (kind == OptimizerKind::kLars) return std::make_unique<CpuLars>(segments);
  return std::make_unique<CpuSgd>(segments);
}

}  // namespace trainer
