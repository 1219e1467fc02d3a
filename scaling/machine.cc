// SPDX-License-Identifier: Apache-2.0

#include "scaling/machine.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "support/number.h"

namespace scaling {
namespace {

// The first whose name is a part of what was asked for counts.
constexpr Gpu kGpus[] = {
    {"h200", 9455, 4206, 0, 700, 141, "nvlink4", "measured with ddltraind (doc/performance.md)"},
    {"h100", 7854, 0, 0, 700, 80, "nvlink4", "measured with ddltraind (doc/performance.md)"},
    {"a100", 2470, 938, 0, 400, 40, "nvlink3",
     "published for NVIDIA's PyTorch trainer on a DGX A100, not measured with ddltraind"},
    {"v100", 1270, 0, 367, 300, 16, "nvlink2",
     "published for NVIDIA's TensorFlow (fp16) and PyTorch (fp32) trainers on a DGX-1, not "
     "measured "
     "with ddltraind"},
};

}  // namespace

const Gpu* FindGpu(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = std::ranges::find_if(
      kGpus, [&](const Gpu& gpu) { return lower.find(gpu.name) != std::string::npos; });
  return found == std::end(kGpus) ? nullptr : &*found;
}

double SpeedOf(const Gpu& gpu, std::string_view precision) {
  if (precision == "fp16" || precision == "bf16" || precision == "amp") return gpu.half;
  if (precision == "tf32") return gpu.tf32;
  return precision == "fp32" ? gpu.fp32 : 0;
}

namespace {

constexpr int kGpusPerNode = 4;
constexpr int kAdapters = 1;
constexpr double kAdapterGbits = 100;

std::string SetCount(std::optional<int>& number, const std::string& value) {
  const std::optional<int> read = support::WholeNumber<int>(value);
  if (!read || *read < 1 || *read > 64) return "a whole number from 1 to 64";
  number = read;
  return "";
}

std::string SetRate(std::optional<double>& number, const std::string& value) {
  const std::optional<double> read = support::WholeNumber<double>(value);
  if (!read || !(*read > 0) || *read > 1e5) return "a number above 0";
  number = read;
  return "";
}

std::string SetInside(Machine& machine, const std::string& value) {
  std::optional<double> rate;
  if (!InsideOfName(value) && !SetRate(rate, value).empty()) {
    std::string names;
    for (const Inside& inside : InsideNames()) names += std::string(inside.name) + ", ";
    return names + "or a number of GB/s";
  }
  machine.inside = value;
  return "";
}

std::string Short(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// What joins the GPUs, by what is said or by their kind.
std::string InsideOf(const Machine& machine) {
  if (machine.inside) return *machine.inside;
  const Gpu* const gpu = FindGpu(machine.gpu);
  return std::string(gpu == nullptr ? "nvlink2" : gpu->inside);
}

}  // namespace

const std::vector<std::string>& MachineKeys() {
  static const std::vector<std::string> keys = {"gpu",      "gpus_per_node", "inside",
                                                "adapters", "adapter_gbits", "file_system_gbs"};
  return keys;
}

std::string SetMachineValue(Machine& machine, const std::string& key, const std::string& value) {
  if (key == "gpus_per_node") return SetCount(machine.gpus_per_node, value);
  if (key == "inside") return SetInside(machine, value);
  if (key == "adapters") return SetCount(machine.adapters, value);
  if (key == "adapter_gbits") return SetRate(machine.adapter_gbits, value);
  if (key == "file_system_gbs") return SetRate(machine.file_system_gbs, value);
  if (value.empty()) return "the name of a GPU";
  machine.gpu = value;
  return "";
}

Links LinksOf(const Machine& machine) {
  Links links;
  links.gpus_per_node = machine.gpus_per_node.value_or(kGpusPerNode);
  links.between = machine.adapters.value_or(kAdapters) *
                  AdapterRate(machine.adapter_gbits.value_or(kAdapterGbits));
  const std::string text = InsideOf(machine);
  if (const std::optional<Inside> inside = InsideOfName(text)) {
    links.inside = inside->rate;
    links.inside_is_pcie = inside->is_pcie;
    links.generation = inside->generation;
  } else {
    links.inside = 1e9 * support::WholeNumber<double>(text).value_or(0);
  }
  return links;
}

std::string DescribeLinks(const Machine& machine) {
  const auto said = [](bool is_logged) { return is_logged ? "" : " (assumed)"; };
  const int gpus = machine.gpus_per_node.value_or(kGpusPerNode);
  const int adapters = machine.adapters.value_or(kAdapters);
  const std::string inside = InsideOf(machine);
  const bool is_name = InsideOfName(inside).has_value();
  return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") + " per node" +
         said(machine.gpus_per_node.has_value()) + ", " + (is_name ? inside + " (" : "") +
         Short(LinksOf(machine).inside / 1e9) + " GB/s" + (is_name ? ")" : "") + " inside" +
         said(machine.inside.has_value()) + ", " + std::to_string(adapters) +
         (adapters == 1 ? " adapter" : " adapters") + " of " +
         Short(machine.adapter_gbits.value_or(kAdapterGbits)) + " Gbit/s" +
         said(machine.adapters.has_value() && machine.adapter_gbits.has_value());
}

namespace {

constexpr double kGigabyte = 1e9;
constexpr double kRest = 1.5 * kGigabyte;

// Of the plan: weights, gradients and momentum, and what each image adds.
struct MemoryModel {
  double network = 0;
  double image = 0;
};

MemoryModel PlanIn(std::string_view precision) {
  const bool is_half = precision == "fp16" || precision == "bf16" || precision == "amp";
  return is_half ? MemoryModel{0.42e9, 40.6e6} : MemoryModel{0.32e9, 85.2e6};
}

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The number before "GB", or 0.
double NamedGigabytes(std::string_view name) {
  const std::size_t unit = name.find("GB");
  if (unit == std::string_view::npos) return 0;
  std::size_t begin = unit;
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  return support::WholeNumber<double>(name.substr(begin, unit - begin)).value_or(0);
}

}  // namespace

double EstimateMemory(std::string_view precision, std::int64_t batch) {
  const MemoryModel plan = PlanIn(precision);
  return kRest + plan.network + plan.image * static_cast<double>(batch);
}

std::int64_t LargestBatch(std::string_view precision, double memory) {
  const double eights = (memory - EstimateMemory(precision, 0)) / (8 * PlanIn(precision).image);
  return 8 * std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(eights)));
}

double MemoryOf(std::string_view gpu) {
  if (const double named = NamedGigabytes(gpu); named > 0) return named * kGigabyte;
  const Gpu* known = FindGpu(gpu);
  return known == nullptr ? 0 : known->gigabytes * kGigabyte;
}

}  // namespace scaling
