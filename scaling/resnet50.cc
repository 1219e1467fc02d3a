// SPDX-License-Identifier: Apache-2.0

#include "scaling/resnet50.h"

namespace scaling {

// Of each bucket its bytes, and how much of backward is over when it is complete.  What backward
// takes of a block is taken to be in proportion to the values that its convolutions write.
std::vector<Bucket> ResNet50Buckets(Sums sums, BucketRule rule) {
  std::vector<Bucket> buckets;
  if (sums == Sums::kFp32) {
    buckets = {{8.196e6, 0}, {31.502e6, 0.0271}, {26.255e6, 0.0564}, {26.550e6, 0.2506}};
    if (rule == BucketRule::kPytorch) {
      buckets.push_back({9.724e6, 1});
    } else {
      buckets.insert(buckets.end(), {{8.691e6, 0.5305}, {1.033e6, 1}});
    }
    return buckets;
  }
  buckets = {{4.096e6, 0}, {28.836e6, 0.0564}};
  if (rule == BucketRule::kPytorch) {
    buckets.push_back({18.066e6, 1});
  } else {
    buckets.insert(buckets.end(), {{17.138e6, 0.5305}, {0.928e6, 1}});
  }
  buckets.push_back({0.2329e6, 1});  // fp32
  return buckets;
}

}  // namespace scaling
