// SPDX-License-Identifier: Apache-2.0
//
// What the ops share of oneDNN: descriptions both ways, and primitives with their arguments.  A
// TensorDesc of kOpaque holds a dnnl::memory::desc.
//
// oneDNN 2.6 to 3.x: what differs between them is in onednn.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "trainer/core/tensor.h"

namespace trainer {

struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  // How activations lie in memory, all of them, so that any two of a shape can be added: as a
  // typical convolution wants them on this machine.
  dnnl::memory::format_tag activations = PreferredLayout(engine);

  static dnnl::memory::format_tag PreferredLayout(const dnnl::engine& engine);
};

// `desc` must be fp32.
dnnl::memory::desc ToMemoryDesc(const TensorDesc& desc);
// kRowMajor or kChannelsLast where `memory` is just that.
TensorDesc ToTensorDesc(const Shape& shape, const dnnl::memory::desc& memory);
// fp32 of `shape`.  kAny leaves the layout to the primitive.
dnnl::memory::desc MemoryDesc(const Shape& shape, dnnl::memory::format_tag layout);
inline constexpr dnnl::memory::format_tag kAny = dnnl::memory::format_tag::any;

// Scratch memory is the caller's, so that all of it is planned.
dnnl::primitive_attr UserScratchpad();

// Bytes of a part of a workspace, rounded so that the next part is aligned as well as the first.
std::size_t AlignedBytes(std::size_t bytes);

// A primitive and the memory objects of its arguments, which get their addresses at every run.
class Call {
 public:
  // `arguments` are DNNL_ARG_*; the scratchpad is not among them.
  template <typename Primitive, typename PrimitiveDesc>
  static Call Make(const OneDnn& onednn, const PrimitiveDesc& desc,
                   std::initializer_list<int> arguments) {
    return Call(onednn, Primitive(desc), desc, arguments);
  }
  // Copies from one layout to another.
  static Call Reorder(const OneDnn& onednn, const dnnl::memory::desc& src,
                      const dnnl::memory::desc& dst);

  std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }

  // Done when it returns.  REQUIRES: every argument of Make is given.
  void Run(std::initializer_list<std::pair<int, const void*>> arguments, void* scratchpad);

 private:
  Call(const OneDnn& onednn, dnnl::primitive primitive, const dnnl::primitive_desc_base& desc,
       std::initializer_list<int> arguments);

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::size_t scratchpad_bytes_ = 0;
};

// A copy of a tensor in another layout, made only where the two layouts differ.
class LayoutChange {
 public:
  LayoutChange(const OneDnn& onednn, const dnnl::memory::desc& src, const dnnl::memory::desc& dst);

  // Of the copy; 0 where none is made.
  std::size_t copy_bytes() const { return copy_bytes_; }
  std::size_t scratchpad_bytes() const { return reorder_ ? reorder_->scratchpad_bytes() : 0; }

  // Before a primitive reads: `src` in the layout of dst, in `copy` if need be.
  const void* Read(const void* src, void* copy, void* scratchpad);
  // Where a primitive shall write in the layout of src, so that Write brings it to `dst`.
  void* Target(void* dst, void* copy) const { return reorder_ ? copy : dst; }
  void Write(void* copy, void* dst, void* scratchpad);

 private:
  std::optional<Call> reorder_;
  std::size_t copy_bytes_ = 0;
};

// The layouts of image tensors that this back end meets are one family, dense (N, C/B, H, W, B):
// B = 1 is row-major, B = C channels last, 8 and 16 are what oneDNN's vector kernels choose.  So a
// loop over one image and one block of channels is a loop over H*W rows of B neighbours.

struct ChannelBlocks {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t blocks = 0;  // the last may hold padding channels, which are zero
  std::int64_t rows = 0;    // H * W
  std::int64_t block = 0;   // B

  std::int64_t padded_channels() const { return blocks * block; }
  // Index of the first element of block b of image n; rows * block elements follow.
  std::int64_t offset(std::int64_t n, std::int64_t b) const {
    return (n * blocks + b) * rows * block;
  }
};

// `desc` is (N, C, H, W), fp32.  Throws a failed DDL_CHECK for a layout outside the family.
ChannelBlocks ChannelBlocksOf(const TensorDesc& desc);

// How a primitive is described to oneDNN.  Version 2 wants an operation descriptor first, version 3
// takes the engine and the arguments; this is the only file that looks at the version.

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
