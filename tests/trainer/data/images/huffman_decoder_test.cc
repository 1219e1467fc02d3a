// SPDX-License-Identifier: Apache-2.0
//
// Single bits of made-up scans; jpeg_test.cc has whole images.

#include "trainer/data/images/huffman_decoder.h"

#include "tests/support/test.h"

namespace trainer {
namespace {

// DC: 0 is no difference, 10 one of 15 bits.  AC: 0 ends the block, 10 is 15 zeros and a value of
// one bit, 11 is a value of one bit.
constexpr HuffmanCodes kDifferences{{1, 1}, {0, 15}};
constexpr HuffmanCodes kCoefficients{{1, 2}, {0x00, 0xf1, 0x01}};
const std::string kEndOfImage = "\xff\xd9";

// The bits as bytes, filled up with ones as T.81, F.1.2.3 wants it, zeros behind bytes of 0xff.
std::string Bytes(const std::string& bits) {
  std::string bytes;
  for (std::size_t at = 0; at < bits.size(); at += 8) {
    std::string eight = bits.substr(at, 8);
    eight.resize(8, '1');
    bytes += static_cast<char>(std::stoi(eight, nullptr, 2));
    if (bytes.back() == '\xff') bytes += '\0';
  }
  return bytes;
}

class Scan {
 public:
  explicit Scan(std::string data, int restart_interval = 0, int blocks = 1)
      : data_(std::move(data)), blocks_(static_cast<std::size_t>(blocks)) {
    EXPECT_TRUE(decoder_.SetDcTable(0, kDifferences));
    EXPECT_TRUE(decoder_.SetAcTable(0, kCoefficients));
    decoder_.Start({reinterpret_cast<const std::uint8_t*>(data_.data()), data_.size()}, blocks_,
                   restart_interval);
  }

  bool Read() {
    std::fill_n(block_, 64, 0);
    return decoder_.Read(pointers_);
  }
  bool Skip() { return decoder_.Skip(); }
  int Coefficient(int place) const { return block_[place]; }

 private:
  const std::string data_;
  const std::vector<UnitBlock> blocks_;
  HuffmanDecoder decoder_;
  CoefficientBlock block_{};
  CoefficientBlock* const pointers_[1] = {&block_};
};

std::string Repeat(const std::string& bits, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += bits;
  return all;
}

TEST(HuffmanDecoder, CoefficientsAreInTheOrderOfTheZigzag) {
  Scan scan(Bytes("0"
                  "111"
                  "110"
                  "101"
                  "0") +
            kEndOfImage);
  ASSERT_TRUE(scan.Read());
  EXPECT_EQ(scan.Coefficient(0), 0);
  EXPECT_EQ(scan.Coefficient(1), 1);
  EXPECT_EQ(scan.Coefficient(8), -1);
  EXPECT_EQ(scan.Coefficient(26), 1) << "the 19th of the zigzag";
}

TEST(HuffmanDecoder, DifferencesAddUp) {
  const std::string much = "10" + Repeat("1", 15) + "0";
  const std::string back = "10" + Repeat("0", 15) + "0";
  Scan scan(Bytes(much + back + back) + kEndOfImage);
  ASSERT_TRUE(scan.Read());
  EXPECT_EQ(scan.Coefficient(0), 32767);
  ASSERT_TRUE(scan.Read());
  EXPECT_EQ(scan.Coefficient(0), 0);
  ASSERT_TRUE(scan.Skip());
}

TEST(HuffmanDecoder, AFullBlockNeedsNoEnd) {
  const std::string full = "0" + Repeat("111", 63);
  for (const bool is_skipped : {false, true}) {
    Scan scan(Bytes(full + "0"
                           "110"
                           "0") +
              kEndOfImage);
    ASSERT_TRUE(is_skipped ? scan.Skip() : scan.Read());
    EXPECT_EQ(scan.Coefficient(63), is_skipped ? 0 : 1);
    ASSERT_TRUE(scan.Read());
    EXPECT_EQ(scan.Coefficient(1), -1);
  }
}

TEST(HuffmanDecoder, RejectsMoreThanABlockHas) {
  const std::string three = "0" + Repeat("101", 3);  // 48 of the 63 coefficients
  const std::string full = three + Repeat("111", 15);
  const std::string one_too_many = three + "101";
  EXPECT_TRUE(Scan(Bytes(full) + kEndOfImage).Read());
  EXPECT_TRUE(Scan(Bytes(full) + kEndOfImage).Skip());
  EXPECT_FALSE(Scan(Bytes(one_too_many) + kEndOfImage).Read());
  EXPECT_FALSE(Scan(Bytes(one_too_many) + kEndOfImage).Skip());
}

TEST(HuffmanDecoder, RejectsDifferencesWithoutEnd) {
  const std::string much = "10" + Repeat("1", 15) + "0";
  Scan scan(Bytes(Repeat(much, 40)) + kEndOfImage);
  int units = 0;
  while (scan.Read()) ++units;
  EXPECT_EQ(units, 32) << "32 x 32767 is below 2^20";
}

TEST(HuffmanDecoder, RejectsWhatIsNoCode) {
  EXPECT_FALSE(Scan(Bytes("11") + kEndOfImage).Read()) << "of a difference";
}

TEST(HuffmanDecoder, DataEndsWithAMarker) {
  const std::string unit = Bytes("00111111");
  EXPECT_TRUE(Scan(unit + kEndOfImage).Read());
  EXPECT_FALSE(Scan(unit).Read());
  EXPECT_FALSE(Scan(unit + "\xff").Read());
  EXPECT_FALSE(Scan(unit + "\xff\xff").Read()) << "any number of ff may stand before a marker";
}

TEST(HuffmanDecoder, RejectsToReadOnBehindTheEnd) {
  Scan scan(Bytes("00"
                  "00"
                  "00"
                  "00") +
            kEndOfImage);
  for (int unit = 0; unit < 4; ++unit) ASSERT_TRUE(scan.Read());
  EXPECT_FALSE(scan.Read());
  // Behind the end there are zeros, of which this would be the last unit.
  Scan half(Bytes("00"
                  "00"
                  "00"
                  "0"
                  "1") +
            kEndOfImage);
  for (int unit = 0; unit < 3; ++unit) ASSERT_TRUE(half.Skip());
  EXPECT_FALSE(half.Skip());
}

TEST(HuffmanDecoder, RestartMarkersCountUpToSeven) {
  std::string data;
  for (int unit = 0; unit < 10; ++unit) {
    if (unit > 0) data += {'\xff', static_cast<char>(0xd0 + (unit - 1) % 8)};
    data += Bytes("10" + Repeat("1", 15) + "0");
  }
  Scan scan(data + kEndOfImage, 1);
  for (int unit = 0; unit < 10; ++unit) {
    ASSERT_TRUE(scan.Read()) << unit;
    EXPECT_EQ(scan.Coefficient(0), 32767) << "differences begin anew";
  }
}

TEST(HuffmanDecoder, RestartMarkerFollowsTheByteOfTheLastBit) {
  const std::string unit = Bytes("01111110");
  const auto reads_both = [&](const std::string& between) {
    Scan scan(unit + between + unit + kEndOfImage, 1);
    return scan.Read() && scan.Read();
  };
  EXPECT_TRUE(reads_both("\xff\xd0"));
  EXPECT_FALSE(reads_both(std::string("\0\xff\xd0", 3))) << "a byte too many";
  EXPECT_FALSE(reads_both("\xff\xd1"));
  EXPECT_FALSE(reads_both(""));
}

}  // namespace
}  // namespace trainer
