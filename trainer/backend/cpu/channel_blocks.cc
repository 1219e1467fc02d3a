// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cpu/channel_blocks.h"

#include "trainer/backend/cpu/onednn.h"
#include "trainer/core/error.h"

namespace trainer {

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
