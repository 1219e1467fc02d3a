// SPDX-License-Identifier: Apache-2.0
//
// The loops of Winograd's convolution give one tile of it as the definition does, on every
// instruction set that this machine has; the contract's tests see only the fastest.

#include "trainer/backend/cpu/winograd_loops.h"

#include "tests/support/test.h"
#include "tests/trainer/backend/device.h"

namespace trainer::detail {
namespace {

constexpr std::int64_t kHeight = 9;
constexpr std::int64_t kWidth = 7;

// One tile of one image with as many channels as a block has; outputs are two blocks.
class WinogradLoopsTest : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    loops_ = WinogradLoopsFor(GetParam());
    if (loops_ == nullptr) GTEST_SKIP() << "this machine has not the instructions";
    block_ = loops_->block;
    ASSERT_EQ(block_, GetParam());
    src_ = RandomFloats(kHeight * kWidth * block_, 1);
    filter_ = RandomFloats(block_ * 9 * 2 * block_, 2);
    diff_dst_ = RandomFloats(kHeight * kWidth * 2 * block_, 3);
  }

  float Src(std::int64_t y, std::int64_t x, std::int64_t c) const {
    if (y < 0 || x < 0 || y >= kHeight || x >= kWidth) return 0;
    return src_[static_cast<std::size_t>((y * kWidth + x) * block_ + c)];
  }
  // [input][tap][output]
  std::size_t FilterIndex(std::int64_t c, std::int64_t tap, std::int64_t k) const {
    return static_cast<std::size_t>((c * 9 + tap) * 2 * block_ + k);
  }
  // Block k / block of the gradient.
  std::size_t DstIndex(std::int64_t y, std::int64_t x, std::int64_t k) const {
    return static_cast<std::size_t>(((k / block_ * kHeight + y) * kWidth + x) * block_ +
                                    k % block_);
  }

  Floats FilterPlaces(bool turned) const {
    Floats places(static_cast<std::size_t>(kPlaces * block_ * 2 * block_));
    for (std::int64_t c = 0; c < block_; ++c) {
      for (std::int64_t half = 0; half < 2; ++half) {
        loops_->filter_to_places(&filter_[FilterIndex(c, turned ? 8 : 0, half * block_)],
                                 turned ? -2 * block_ : 2 * block_,
                                 &places[static_cast<std::size_t>((c * 2 + half) * block_)],
                                 block_ * 2 * block_);
      }
    }
    return places;
  }

  const WinogradLoops* loops_ = nullptr;
  std::int64_t block_ = 0;
  Floats src_, filter_, diff_dst_;
};

// In the corners and in the middle, adding and not, with the filter as it is and turned round.
TEST_P(WinogradLoopsTest, ConvolveATile) {
  for (const bool turned : {false, true}) {
    const Floats filter_places = FilterPlaces(turned);
    for (const auto& [y0, x0] : {std::pair{0, 0}, {4, 0}, {4, 4}, {8, 4}}) {
      const TileWindow window{kHeight, kWidth, y0, x0};
      Floats src_places(static_cast<std::size_t>(kPlaces * block_));
      loops_->src_to_places(window, src_.data(), src_places.data(), block_);
      Floats products(static_cast<std::size_t>(kPlaces * 2 * block_), NAN);
      for (std::int64_t p = 0; p < kPlaces; ++p) {
        loops_->multiply({.rows = 1,
                          .depth = block_,
                          .a = &src_places[static_cast<std::size_t>(p * block_)],
                          .a_row = block_,
                          .a_depth = 1,
                          .b = &filter_places[static_cast<std::size_t>(p * block_ * 2 * block_)],
                          .b_depth = 2 * block_,
                          .c = &products[static_cast<std::size_t>(p * 2 * block_)],
                          .c_row = 2 * block_});
      }
      Floats dst(diff_dst_.size(), 1.0F);
      for (std::int64_t half = 0; half < 2; ++half) {
        loops_->places_to_dst(window, &products[static_cast<std::size_t>(half * block_)],
                              2 * block_, half == 1, &dst[DstIndex(0, 0, half * block_)]);
      }
      for (std::int64_t y = 0; y < kHeight; ++y) {
        for (std::int64_t x = 0; x < kWidth; ++x) {
          const bool inside = y >= y0 && y < y0 + 4 && x >= x0 && x < x0 + 4;
          for (std::int64_t k = 0; k < 2 * block_; ++k) {
            double wanted = k / block_ == 1 || !inside ? 1 : 0;
            for (std::int64_t tap = 0; inside && tap < 9; ++tap) {
              for (std::int64_t c = 0; c < block_; ++c) {
                wanted += double{Src(y + tap / 3 - 1, x + tap % 3 - 1, c)} *
                          filter_[FilterIndex(c, turned ? 8 - tap : tap, k)];
              }
            }
            ASSERT_NEAR(dst[DstIndex(y, x, k)], wanted, 2e-4)
                << "turned " << turned << " tile " << y0 << "," << x0 << " at " << y << "," << x
                << " channel " << k;
          }
        }
      }
    }
  }
}

TEST_P(WinogradLoopsTest, SumTheGradientOfTheFilterOverTiles) {
  const std::int64_t tiles = 3;
  const TileWindow windows[] = {
      {kHeight, kWidth, 0, 0}, {kHeight, kWidth, 4, 4}, {kHeight, kWidth, 8, 0}};
  const std::int64_t panel = 2 * block_;
  Floats src_places(static_cast<std::size_t>(kPlaces * tiles * block_));
  Floats dst_places(static_cast<std::size_t>(kPlaces * tiles * panel));
  for (std::int64_t t = 0; t < tiles; ++t) {
    loops_->src_to_places(windows[t], src_.data(),
                          &src_places[static_cast<std::size_t>(t * block_)], tiles * block_);
    for (std::int64_t half = 0; half < 2; ++half) {
      loops_->diff_dst_to_places(windows[t], &diff_dst_[DstIndex(0, 0, half * block_)],
                                 &dst_places[static_cast<std::size_t>(t * panel + half * block_)],
                                 tiles * panel);
    }
  }
  Floats sums(static_cast<std::size_t>(kPlaces * block_ * panel), NAN);
  // The first tile by itself: what comes after adds to it.
  for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 2}}) {
    for (std::int64_t p = 0; p < kPlaces; ++p) {
      loops_->multiply({.rows = block_,
                        .depth = count,
                        .a = &src_places[static_cast<std::size_t>((p * tiles + first) * block_)],
                        .a_row = 1,
                        .a_depth = block_,
                        .b = &dst_places[static_cast<std::size_t>((p * tiles + first) * panel)],
                        .b_depth = panel,
                        .c = &sums[static_cast<std::size_t>(p * block_ * panel)],
                        .c_row = panel,
                        .adds = first > 0});
    }
  }
  for (std::int64_t c = 0; c < block_; ++c) {
    for (std::int64_t half = 0; half < 2; ++half) {
      Floats taps(static_cast<std::size_t>(9 * block_), NAN);
      loops_->places_to_diff_filter(&sums[static_cast<std::size_t>(c * panel + half * block_)],
                                    block_ * panel, taps.data(), block_);
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        for (std::int64_t k = 0; k < block_; ++k) {
          double wanted = 0;
          for (const TileWindow& window : windows) {
            for (std::int64_t y = window.y; y < std::min(window.y + 4, kHeight); ++y) {
              for (std::int64_t x = window.x; x < std::min(window.x + 4, kWidth); ++x) {
                wanted += double{Src(y + tap / 3 - 1, x + tap % 3 - 1, c)} *
                          diff_dst_[DstIndex(y, x, half * block_ + k)];
              }
            }
          }
          ASSERT_NEAR(taps[static_cast<std::size_t>(tap * block_ + k)], wanted, 2e-4)
              << "input " << c << " tap " << tap << " output " << half * block_ + k;
        }
      }
    }
  }
}

// Rows that do not fill a register's worth, and not a row more.
TEST_P(WinogradLoopsTest, MultiplyAnyNumberOfRows) {
  constexpr std::int64_t kDepth = 5;
  const std::int64_t panel = 2 * block_;
  const Floats a = RandomFloats(20 * kDepth, 4);
  const Floats b = RandomFloats(kDepth * panel, 5);
  for (std::int64_t rows = 0; rows < 20; ++rows) {
    Floats c(static_cast<std::size_t>(20 * panel), 7.0F);
    loops_->multiply({.rows = rows,
                      .depth = kDepth,
                      .a = a.data(),
                      .a_row = kDepth,
                      .a_depth = 1,
                      .b = b.data(),
                      .b_depth = panel,
                      .c = c.data(),
                      .c_row = panel});
    for (std::int64_t r = 0; r < 20; ++r) {
      for (std::int64_t j = 0; j < panel; ++j) {
        double wanted = r < rows ? 0 : 7;
        for (std::int64_t d = 0; r < rows && d < kDepth; ++d) {
          wanted += double{a[static_cast<std::size_t>(r * kDepth + d)]} *
                    b[static_cast<std::size_t>(d * panel + j)];
        }
        ASSERT_NEAR(c[static_cast<std::size_t>(r * panel + j)], wanted, 1e-5) << rows << " rows";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, WinogradLoopsTest, testing::Values(8, 16),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace trainer::detail
