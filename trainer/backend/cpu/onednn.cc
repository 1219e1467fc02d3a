// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cpu/onednn.h"

#include <algorithm>
#include <memory>

#include "trainer/core/error.h"
#include "trainer/core/memory_planner.h"

namespace trainer {
namespace {

using dnnl::memory;

memory::dims DimsOf(const Shape& shape) {
  memory::dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

memory::desc RowMajorMemory(const Shape& shape) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::a, memory::format_tag::ab,
                                          memory::format_tag::abc, memory::format_tag::abcd};
  DDL_CHECK(shape.rank() >= 1);
  return MemoryDesc(shape, kTags[shape.rank() - 1]);
}

}  // namespace

memory::desc MemoryDesc(const Shape& shape, memory::format_tag layout) {
  return {DimsOf(shape), memory::data_type::f32, layout};
}

memory::desc ToMemoryDesc(const TensorDesc& desc) {
  DDL_CHECK(desc.dtype == DType::kFloat32);
  switch (desc.layout) {
    case Layout::kRowMajor:
      return RowMajorMemory(desc.shape);
    case Layout::kChannelsLast:
      return MemoryDesc(desc.shape, memory::format_tag::nhwc);
    case Layout::kOpaque:
      break;
  }
  DDL_CHECK(desc.opaque != nullptr);
  return *static_cast<const memory::desc*>(desc.opaque.get());
}

TensorDesc ToTensorDesc(const Shape& shape, const memory::desc& memory) {
  if (memory == RowMajorMemory(shape)) return RowMajor(shape, DType::kFloat32);
  if (shape.rank() == 4 && memory == MemoryDesc(shape, memory::format_tag::nhwc)) {
    return ChannelsLast(shape, DType::kFloat32);
  }
  TensorDesc desc;
  desc.shape = shape;
  desc.layout = Layout::kOpaque;
  desc.bytes = memory.get_size();
  desc.opaque = std::make_shared<const memory::desc>(memory);
  return desc;
}

memory::format_tag OneDnn::PreferredLayout(const dnnl::engine& engine) {
  const Shape image{1, 64, 16, 16};
  const memory::dims ones{1, 1};
  const auto convolution = DescribeForward<dnnl::convolution_forward>(
      engine, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
      MemoryDesc(image, kAny), MemoryDesc({64, 64, 3, 3}, kAny), MemoryDesc(image, kAny), ones,
      ones, ones);
  DDL_CHECK(convolution);
  for (const auto tag :
       {memory::format_tag::nChw16c, memory::format_tag::nChw8c, memory::format_tag::nhwc}) {
    if (convolution.dst_desc() == MemoryDesc(image, tag)) return tag;
  }
  return memory::format_tag::nchw;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::size_t AlignedBytes(std::size_t bytes) {
  return (bytes + MemoryPlanner::kAlignment - 1) / MemoryPlanner::kAlignment *
         MemoryPlanner::kAlignment;
}

Call::Call(const OneDnn& onednn, dnnl::primitive primitive, const dnnl::primitive_desc_base& desc,
           std::initializer_list<int> arguments)
    : stream_(onednn.stream), primitive_(std::move(primitive)) {
  for (const int argument : arguments) {
    const memory::desc md = desc.query_md(dnnl::query::exec_arg_md, argument);
    DDL_CHECK(md.get_size() > 0);
    arguments_.emplace(argument, memory(md, onednn.engine, DNNL_MEMORY_NONE));
  }
  const memory::desc scratchpad = desc.scratchpad_desc();
  scratchpad_bytes_ = scratchpad.get_size();
  if (scratchpad_bytes_ > 0) {
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, memory(scratchpad, onednn.engine, DNNL_MEMORY_NONE));
  }
}

Call Call::Reorder(const OneDnn& onednn, const memory::desc& src, const memory::desc& dst) {
  const dnnl::reorder::primitive_desc desc(onednn.engine, src, onednn.engine, dst,
                                           UserScratchpad());
  return Make<dnnl::reorder>(onednn, desc, {DNNL_ARG_SRC, DNNL_ARG_DST});
}

void Call::Run(std::initializer_list<std::pair<int, const void*>> arguments, void* scratchpad) {
  for (const auto& [argument, data] : arguments) {
    arguments_.at(argument).set_data_handle(const_cast<void*>(data));
  }
  if (scratchpad_bytes_ > 0) arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad);
  primitive_.execute(stream_, arguments_);
  stream_.wait();
}

LayoutChange::LayoutChange(const OneDnn& onednn, const memory::desc& src, const memory::desc& dst) {
  if (src == dst) return;
  reorder_ = Call::Reorder(onednn, src, dst);
  copy_bytes_ = AlignedBytes(std::max(src.get_size(), dst.get_size()));
}

const void* LayoutChange::Read(const void* src, void* copy, void* scratchpad) {
  if (!reorder_) return src;
  reorder_->Run({{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, copy}}, scratchpad);
  return copy;
}

void LayoutChange::Write(void* copy, void* dst, void* scratchpad) {
  if (reorder_) reorder_->Run({{DNNL_ARG_SRC, copy}, {DNNL_ARG_DST, dst}}, scratchpad);
}

ChannelBlocks ChannelBlocksOf(const TensorDesc& desc) {
  using dnnl::memory;
  const Shape& shape = desc.shape;
  DDL_CHECK(shape.rank() == 4 && shape.elements() > 0);
  ChannelBlocks result;
  result.batch = shape[0];
  result.channels = shape[1];
  result.rows = shape[2] * shape[3];

  const memory::desc actual = ToMemoryDesc(desc);
  const auto is = [&](memory::format_tag tag) {
    return actual ==
           memory::desc({shape[0], shape[1], shape[2], shape[3]}, memory::data_type::f32, tag);
  };
  if (is(memory::format_tag::nChw16c)) {
    result.block = 16;
  } else if (is(memory::format_tag::nChw8c)) {
    result.block = 8;
  } else if (is(memory::format_tag::nhwc)) {
    result.block = result.channels;
  } else if (is(memory::format_tag::nchw)) {
    result.block = 1;
  }
  DDL_CHECK(result.block > 0);
  result.blocks = (result.channels + result.block - 1) / result.block;
  return result;
}

}  // namespace trainer
