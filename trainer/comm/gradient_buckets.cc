// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/gradient_buckets.h"

#include "trainer/core/error.h"

namespace trainer {

std::vector<GradientBucket> PlanGradientBuckets(std::span<const std::size_t> tensor_ends,
                                                std::size_t element_bytes, std::size_t first_bytes,
                                                std::size_t bucket_bytes) {
  DDL_CHECK(element_bytes > 0);
  std::vector<GradientBucket> buckets;
  if (tensor_ends.empty()) return buckets;
  std::size_t end = tensor_ends.back();  // of the bucket being filled
  for (std::size_t i = tensor_ends.size(); i-- > 0;) {
    const std::size_t begin = i == 0 ? 0 : tensor_ends[i - 1];
    DDL_CHECK(begin <= tensor_ends[i]);
    const std::size_t target = buckets.empty() ? first_bytes : bucket_bytes;
    if (begin < end && (begin == 0 || (end - begin) * element_bytes >= target)) {
      buckets.push_back({begin, end - begin});
      end = begin;
    }
  }
  return buckets;
}

}  // namespace trainer
