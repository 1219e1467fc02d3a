// SPDX-License-Identifier: Apache-2.0
//
// Convolution on sizes that are awkward on purpose.

#include "tests/trainer/backend/probe.h"

namespace trainer {
namespace {

struct ConvolutionCase {
  Shape src;
  std::int64_t out_channels, kernel, stride, padding;
};

class ConvolutionProbe final : public Probe {
 public:
  ConvolutionProbe(Device& device, const ConvolutionCase& c)
      : device_(device),
        src_(device.Make(c.src[1] == 3 ? device.backend().MakeInputTransform(c.src)->dst()
                                       : device.Images(c.src))),
        op_(device.backend().MakeConvolution(
            {src_.desc, c.out_channels, c.kernel, c.stride, c.padding})),
        filter_(device.Make(op_->filter())),
        dst_(device.Make(op_->dst())),
        diff_src_(device.Make(src_.desc)),
        diff_filter_(device.Make(op_->filter())),
        diff_dst_(device.Make(op_->dst())),
        workspace_(device.Scratch(op_->workspace_bytes())) {}

  std::vector<Input> inputs() const override {
    return {{"src", src_.desc.shape}, {"filter", filter_.desc.shape}};
  }

  Values Forward(const Values& inputs) override {
    device_.Import(inputs.at("src"), src_);
    device_.Import(inputs.at("filter"), filter_);
    Poison(dst_);
    op_->Forward(src_, filter_, dst_, workspace_, device_.stream());
    return {{"dst", device_.Export(dst_)}};
  }

  Values Backward(const Floats& diff_dst) override {
    device_.Import(diff_dst, diff_dst_);
    Poison(diff_filter_);
    op_->BackwardFilter(src_, diff_dst_, diff_filter_, workspace_, device_.stream());
    Values gradients{{"filter", device_.Export(diff_filter_)}};
    if (src_.desc.shape[1] == 3) return gradients;  // nothing goes back into the images
    Poison(diff_src_);
    op_->BackwardData(diff_dst_, filter_, diff_src_, workspace_, device_.stream());
    gradients["src"] = device_.Export(diff_src_);
    return gradients;
  }

 private:
  void Poison(const Tensor& output) {
    device_.Poison(output.data, output.desc.bytes);
    device_.Poison(workspace_, op_->workspace_bytes());
  }

  Device& device_;
  Tensor src_;
  std::unique_ptr<Convolution> op_;
  Tensor filter_, dst_, diff_src_, diff_filter_, diff_dst_;
  void* workspace_;
};

}  // namespace

std::vector<ProbeCase> ConvolutionCases() {
  std::vector<ProbeCase> cases;
  const ConvolutionCase all[] = {
      {{2, 5, 7, 6}, 9, 1, 1, 0},
      {{1, 16, 1, 1}, 8, 1, 1, 0},
      {{3, 8, 5, 5}, 16, 1, 2, 0},
      {{2, 17, 8, 7}, 13, 1, 2, 0},
      {{2, 64, 4, 4}, 64, 1, 1, 0},
      {{2, 6, 7, 5}, 10, 3, 1, 1},
      {{1, 16, 1, 1}, 16, 3, 1, 1},
      {{1, 8, 5, 9}, 8, 3, 2, 1},
      {{2, 33, 6, 6}, 17, 3, 2, 1},
      {{3, 32, 8, 8}, 32, 3, 2, 1},
      {{1, 16, 2, 3}, 24, 3, 2, 1},
      {{2, 16, 1, 1}, 16, 3, 2, 1},
      {{2, 3, 13, 15}, 64, 7, 2, 3},
      {{1, 3, 8, 9}, 10, 7, 2, 3},
      {{3, 3, 16, 16}, 16, 7, 2, 3},
      {{1, 3, 1, 1}, 4, 7, 2, 3},
      // Enough tiles for Winograd algorithms, some of which stick out.
      {{16, 16, 7, 5}, 16, 3, 1, 1},
      {{4, 32, 13, 14}, 16, 3, 1, 1},
      {{16, 32, 7, 5}, 64, 3, 1, 1},
      {{5, 64, 13, 14}, 32, 3, 1, 1},
  };
  for (const ConvolutionCase& c : all) {
    const std::string name = "convolution_" + Dimensions(c.src) + "_to" +
                             std::to_string(c.out_channels) + "_kernel" + std::to_string(c.kernel) +
                             "_stride" + std::to_string(c.stride);
    // Linear in each input: any step is right.  Finite differences of the largest take seconds;
    // that they agree with the reference, whose gradients are right at all other sizes, is enough.
    const std::int64_t products = c.src[0] * c.src[1] * c.src[2] * c.src[3] * c.out_channels *
                                  c.kernel * c.kernel / (c.stride * c.stride);
    const double step = products < 5'000'000 ? 0.5 : 0;
    cases.push_back({name,
                     [c](Device& device) { return std::make_unique<ConvolutionProbe>(device, c); },
                     1, step});
  }
  return cases;
}

}  // namespace trainer
