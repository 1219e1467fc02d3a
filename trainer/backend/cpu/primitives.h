// SPDX-License-Identifier: Apache-2.0
//
// How a primitive is described to oneDNN.  Version 2 wants an operation descriptor first, version 3
// takes the engine and the arguments; this is the only file that looks at the version.

#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "trainer/backend/cpu/onednn.h"

namespace trainer {

// The arguments are those that both versions take between the engine and the attributes, in their
// order (no dilation for a convolution).  The scratchpad is the caller's.  Empty if oneDNN has no
// such kernel.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc DescribeForward(const dnnl::engine& engine,
                                                   const Arguments&... arguments) {
  constexpr bool kAllowEmpty = true;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., UserScratchpad(), kAllowEmpty};
#else
  return {typename Primitive::desc(arguments...), UserScratchpad(), engine, kAllowEmpty};
#endif
}

// The same for a backward pass; `forward` is the description of its forward pass.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine,
                                                    const Forward& forward,
                                                    const Arguments&... arguments) {
  constexpr bool kAllowEmpty = true;
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., forward, UserScratchpad(), kAllowEmpty};
#else
  return {typename Primitive::desc(arguments...), UserScratchpad(), engine, forward, kAllowEmpty};
#endif
}

// Pooling with dilation, which is version 3's only one.
#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
#else
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
#endif

}  // namespace trainer
