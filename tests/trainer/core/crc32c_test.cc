// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/crc32c.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace trainer {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint32_t Crc32c(const Bytes& bytes) {
  return trainer::Crc32c(std::as_bytes(std::span(bytes)));
}

// RFC 3720, B.4.
TEST(Crc32c, GivesTheVectorsOfTheRfc) {
  EXPECT_EQ(Crc32c(Bytes(32, 0x00)), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(Bytes(32, 0xff)), 0x62a8ab43U);
  Bytes ascending(32);
  std::iota(ascending.begin(), ascending.end(), std::uint8_t{0});
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eU);
  EXPECT_EQ(Crc32c(Bytes(ascending.rbegin(), ascending.rend())), 0x113fdb5cU);
  Bytes read_command(48, 0);
  read_command[0] = 0x01;
  read_command[1] = 0xc0;
  read_command[16] = 0x14;
  read_command[22] = 0x04;
  read_command[27] = 0x14;
  read_command[31] = 0x18;
  read_command[32] = 0x28;
  read_command[40] = 0x02;
  EXPECT_EQ(Crc32c(read_command), 0xd9963a56U);
}

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(Crc32c(Bytes()), 0U); }

TEST(Crc32c, MaskingRotatesAndAdds) {
  const Bytes zeros(32, 0x00);
  // 0x8a9136aa rotated right by 15 is 0x6d551522.
  EXPECT_EQ(MaskedCrc32c(std::as_bytes(std::span(zeros))), 0x6d551522U + 0xa282ead8U);
}

}  // namespace
}  // namespace trainer
