// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/predict_options.h"

#include <CLI/CLI.hpp>

#include "bench/ddlbench/option_kinds.h"

namespace bench {
namespace {

// A number that may have a fraction.
void AddReal(CLI::App* predict, const std::string& name, double& number, const std::string& help) {
  predict->add_option(name, number, help)->capture_default_str()->type_name("X");
}

void AddSpeeds(CLI::App* predict, PredictOptions& values) {
  predict->add_option("--speed", values.speed, "Images/s of one GPU by itself")->type_name("X");
  predict
      ->add_option("--node_speed", values.node_speed,
                   "Images/s of one node: says how far ranks are apart; without it they are alike")
      ->type_name("X");
  predict
      ->add_option("--two_nodes_speed", values.two_nodes_speed,
                   "Images/s of two nodes: says what is waited for between nodes")
      ->type_name("X");
  predict
      ->add_option("--from", values.from,
                   "Folder of logs of ddlbench sweep, in place of the three speeds: 1n1g, and "
                   "where it has them one and two whole nodes; what else it has is shown beside")
      ->type_name("DIR");
  predict
      ->add_option("--precision", values.precision,
                   "Of the known speed of --gpu or the site, where no other is given")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
  AddNumber(predict, "--batch_size", values.batch_size, "Images of a GPU in a step");
  predict->add_option("--backward_share", values.backward_share, "Of a step that is backward")
      ->capture_default_str()
      ->type_name("X");
}

void AddMachine(CLI::App* predict, PredictOptions& values) {
  const auto add = [&](const char* key, const char* shape, const char* help) {
    predict->add_option(std::string("--") + key, values.machine[key], help)->type_name(shape);
  };
  predict
      ->add_option("--site", values.site,
                   "Links of this site file of ddlrun, or of an installed one: bede")
      ->type_name("FILE|NAME");
  add("gpu", "NAME", "Kind of GPU, whose speed is known: V100, A100, H100, H200");
  add("gpus_per_node", "N", "GPUs of a node; without it those of site or logs, else 4");
  add("inside", "NAME|GB/s",
      "Links of the GPUs in a node: xbus (AC922), nvlink2, nvlink3, nvlink4, pcie3, pcie4, or the "
      "bus bandwidth of a sum over one node; without it those of the GPU");
  add("adapters", "N", "Network adapters of a node; without it those of the site, else 1");
  add("adapter_gbits", "X", "Gbit/s of an adapter; without it those of the site, else 100");
  add("file_system_gbs", "X",
      "GB/s that all nodes together read; without it that of the site, else never waited for");
  AddReal(predict, "--delay_us", values.delay_us, "More microseconds of a hop between nodes");
  predict
      ->add_option("--table", values.table,
                   "Table of all_reduce_perf or ddlbench allreduce, measured over several nodes: "
                   "its bus bandwidth counts between nodes")
      ->type_name("FILE");
}

}  // namespace

void AddPredictCommand(CLI::App& app, BenchOptions& options) {
  CLI::App* predict = AddCommand(
      app, options, BenchCommand::kPredict, "predict",
      "Say how fast ResNet-50 will train on how many nodes, what bounds it and what would be "
      "faster, from the speed of one GPU and the links of the machine");
  PredictOptions& values = options.predict;
  AddSpeeds(predict, values);
  AddMachine(predict, values);
  predict->add_option("--sums", values.sums, "Type in which gradients are summed")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "16bit"}));
  predict
      ->add_option("--buckets", values.buckets,
                   "Whose buckets of gradients: ddltraind, or pytorch, which sums up to 25 MB when "
                   "backward is over")
      ->capture_default_str()
      ->check(CLI::IsMember({"ddltraind", "pytorch"}));
  predict
      ->add_option("--overlap", values.overlap,
                   "Whether sums run beside backward: yes, no, or auto: unless ranks are further "
                   "apart on one node than where sums are hidden")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "yes", "no"}));
  AddReal(predict, "--cycle_ms", values.cycle_ms,
          "Sums start at multiples of so many ms only, as with HOROVOD_CYCLE_TIME; 0: at once");
  AddReal(
      predict, "--staging_gbs", values.staging_gbs,
      "GB/s at which gradients go to host memory and back, where they are summed there; 0: they "
      "are summed on the GPUs");
  AddReal(predict, "--node_input", values.node_input,
          "Images/s that the processors of a node decode (ddlbench loader); 0: never waited for");
  AddReal(predict, "--image_kb", values.image_kb, "kB of an image's file");
  AddList(predict, "--nodes", values.nodes, "N,...", "Numbers of nodes, each from 1 to 4096");
  predict->add_flag("--json", values.json, "Print all numbers as one JSON object");
}

}  // namespace bench
