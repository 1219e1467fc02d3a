// SPDX-License-Identifier: Apache-2.0

#include "scaling/machine.h"

#include <cmath>

#include "scaling/gpus.h"
#include "support/number.h"

namespace scaling {
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

}  // namespace scaling
