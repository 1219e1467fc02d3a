// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/roofline.h"

namespace trainer {
namespace {

struct Card {
  std::string_view part_of_name;
  CardPeak peak;
};

// NVIDIA's data sheets.  The first that fits counts: a longer name stands before a shorter one.
constexpr Card kCards[] = {
    {"V100-PCIE", {112e12, 900e9}},       {"V100", {125e12, 900e9}},
    {"A100-SXM4-80GB", {312e12, 2039e9}}, {"A100 80GB PCIe", {312e12, 1935e9}},
    {"A100", {312e12, 1555e9}},           {"H100 PCIe", {756e12, 2039e9}},
    {"H100 NVL", {835e12, 3938e9}},       {"H100 80GB HBM3", {989e12, 3352e9}},
    {"GH200 480GB", {989e12, 4022e9}},    {"H200 NVL", {835e12, 4800e9}},
    {"H200", {989e12, 4800e9}},
};

}  // namespace

std::optional<CardPeak> PeakOfCard(std::string_view name) {
  for (const Card& card : kCards) {
    if (name.find(card.part_of_name) != std::string_view::npos) return card.peak;
  }
  return std::nullopt;
}

RooflineShare ShareOfRoofline(const ImageWork& work, const CardPeak& peak,
                              double images_per_second) {
  return {images_per_second * work.flop / peak.flops,
          images_per_second * work.bytes / peak.bytes_per_second};
}

}  // namespace trainer
