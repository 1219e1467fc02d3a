// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/gradient_buckets.h"

#include <algorithm>

#include "trainer/core/error.h"

namespace trainer {
namespace {

void CutLast(std::span<const std::size_t> tensor_ends, std::size_t element_bytes,
             const GradientBucketBytes& bytes, std::vector<GradientBucket>& buckets) {
  const std::size_t left = buckets.back().count * element_bytes;  // over, from element 0 on
  if (left <= bytes.last || left <= bytes.first) return;
  const std::size_t limit = std::min(bytes.last, left - bytes.first);
  const auto too_far = std::ranges::upper_bound(tensor_ends, limit / element_bytes);
  const std::size_t cut = too_far == tensor_ends.begin() ? 0 : *(too_far - 1);
  if (cut == 0) return;
  buckets.back() = {cut, buckets.back().count - cut};
  buckets.push_back({0, cut});
}

}  // namespace

std::vector<GradientBucket> PlanGradientBuckets(std::span<const std::size_t> tensor_ends,
                                                std::size_t element_bytes,
                                                const GradientBucketBytes& bytes) {
  DDL_CHECK(element_bytes > 0);
  std::vector<GradientBucket> buckets;
  if (tensor_ends.empty()) return buckets;
  std::size_t end = tensor_ends.back();  // of the bucket being filled
  for (std::size_t i = tensor_ends.size(); i-- > 0;) {
    const std::size_t begin = i == 0 ? 0 : tensor_ends[i - 1];
    DDL_CHECK(begin <= tensor_ends[i]);
    const std::size_t target = buckets.empty() ? bytes.first : bytes.rest;
    if (begin < end && (begin == 0 || (end - begin) * element_bytes >= target)) {
      buckets.push_back({begin, end - begin});
      end = begin;
    }
  }
  if (!buckets.empty()) CutLast(tensor_ends, element_bytes, bytes, buckets);
  return buckets;
}

}  // namespace trainer
