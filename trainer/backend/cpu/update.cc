// SPDX-License-Identifier: Apache-2.0
//
// The parameters are cut into pieces of a fixed size, whatever the number of threads; each piece
// has its own partial sum, and those are added up in order: the bits depend on neither timing nor
// threads.

#include <algorithm>
#include <utility>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/loops.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kPieceElements = 16384;  // what is read and written fits a core's L2 cache

class CpuSgd final : public Sgd {
 public:
  explicit CpuSgd(const std::vector<ParameterSegment>& segments) {
    for (const ParameterSegment& segment : segments) {
      for (std::size_t at = 0; at < segment.count; at += kPieceElements) {
        pieces_.push_back(
            {segment.begin + at, std::min(kPieceElements, segment.count - at), segment.decay});
      }
    }
    sums_.resize(pieces_.size());
    gradient_sums_.resize(pieces_.size());
  }

  void Step(const SgdParameters* call_memory, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& /*stream*/) override {
    DDL_CHECK(compute_copy == nullptr && gradients.compute == nullptr);
    const float* gradient = gradients.fp32;
    const bool finite = AllFinite(gradient);
    const SgdParameters call = *call_memory;
    SgdParameters plain = call;
    plain.weight_decay = 0;
#pragma omp parallel for schedule(static)
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const ParameterSegment& piece = pieces_[p];
      float* values = weight + piece.begin;
      sums_[p] = piece.decay ? loops_.sum_of_squares(values, piece.count) : 0;
      gradient_sums_[p] = loops_.sum_of_squares(gradient + piece.begin, piece.count);
      if (finite) {
        loops_.sgd(piece.decay ? call : plain, piece.count, gradient + piece.begin, values,
                   momentum + piece.begin);
      }
    }
    *sums = {Total(sums_), finite ? 0.0F : 1.0F, Total(gradient_sums_)};
  }

 private:
  static float Total(const std::vector<float>& sums) {
    double total = 0;
    for (const float sum : sums) total += sum;
    return static_cast<float>(total);
  }

  bool AllFinite(const float* gradient) const {
    bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      finite = loops_.all_finite(gradient + pieces_[p].begin, pieces_[p].count) && finite;
    }
    return finite;
  }

  const detail::Loops& loops_ = detail::BestLoops();
  std::vector<ParameterSegment> pieces_;
  std::vector<float> sums_;           // one for each piece
  std::vector<float> gradient_sums_;  // the same of the gradients
};

}  // namespace

std::unique_ptr<Sgd> MakeCpuSgd(std::vector<ParameterSegment> segments) {
  return std::make_unique<CpuSgd>(segments);
}

}  // namespace trainer
