// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/predict_options.h"

namespace bench {
namespace {

using support::OneOf;
using support::WithDefault;

// One of the keys of scaling/machine.h.
support::Option MachineOption(PredictOptions& values, const std::string& key,
                              const std::string& shape, const std::string& help) {
  return {"--" + key, &values.machine[key], shape, help};
}

}  // namespace

support::Command PredictCommand(BenchOptions& options) {
  PredictOptions& values = options.predict;
  return support::MakeCommand(
      options.command, BenchCommand::kPredict, "predict",
      "Say how fast ResNet-50 will train on how many nodes, what bounds it and what would be "
      "faster, from the speed of one GPU and the links of the machine",
      {WithDefault({"--speed", &values.speed, "X", "Images/s of one GPU by itself"}, ""),
       WithDefault({"--node_speed", &values.node_speed, "X",
                    "Images/s of one node: says how far ranks are apart; without it they are "
                    "alike"},
                   ""),
       WithDefault({"--two_nodes_speed", &values.two_nodes_speed, "X",
                    "Images/s of two nodes: says what is waited for between nodes"},
                   ""),
       {"--from", &values.from, "DIR",
        "Directory of logs of ddlbench sweep, instead of the three speeds: 1n1g, and where it has "
        "them one and two whole nodes; what else it has is shown beside"},
       OneOf({"--precision", &values.precision, "",
              "Of the known speed of --gpu or the site, where no other is given"},
             {"fp32", "tf32", "fp16", "bf16"}),
       {"--batch_size", &values.batch_size, "N", "Images of a GPU in a step"},
       {"--backward_share", &values.backward_share, "X", "Of a step that is backward"},
       {.names = "--profile",
        .place = &values.profile,
        .shape = "FILE",
        .help = "profile.json of one GPU (ddltraind --profile): says how long backward takes in "
                "each block, and of a step, instead of what is typical",
        .excludes = "--backward_share"},
       {"--site", &values.site, "FILE|NAME",
        "Links of this site file of ddlrun, or of an installed one: bede"},
       {"--other_nodes", &values.other_nodes, "N",
        "Nodes of another kind that are in the same job, beside those of each line; 0: none"},
       {"--other_site", &values.other_site, "FILE|NAME", "Site file of these: GPU and links"},
       WithDefault({"--other_speed", &values.other_speed, "X",
                    "Images/s of one of their GPUs by itself; without it that of its kind, where "
                    "it is known"},
                   ""),
       MachineOption(values, "gpu", "NAME",
                     "Kind of GPU, whose speed is known: V100, A100, H100, H200"),
       MachineOption(values, "gpus_per_node", "N",
                     "GPUs of a node; without it those of site or logs, else 4"),
       MachineOption(values, "inside", "NAME|GB/s",
                     "Links of the GPUs in a node: xbus (AC922), nvlink2, nvlink3, nvlink4, "
                     "pcie3, pcie4, or the bus bandwidth of a sum over one node; without it those "
                     "of the GPU"),
       MachineOption(values, "adapters", "N",
                     "Network adapters of a node; without it those of the site, else 1"),
       MachineOption(values, "adapter_gbits", "X",
                     "Gbit/s of an adapter; without it those of the site, else 100"),
       MachineOption(values, "file_system_gbs", "X",
                     "GB/s that all nodes together read; without it that of the site, else never "
                     "waited for"),
       {"--delay_us", &values.delay_us, "X", "More microseconds of a hop between nodes"},
       {"--table", &values.table, "FILE",
        "Table of all_reduce_perf or ddlbench allreduce, measured over several nodes: its bus "
        "bandwidth counts between nodes"},
       OneOf({"--sums", &values.sums, "", "Type in which gradients are summed"}, {"fp32", "16bit"}),
       OneOf({"--buckets", &values.buckets, "",
              "Whose buckets of gradients: ddltraind, or pytorch, which sums up to 25 MB when "
              "backward is over"},
             {"ddltraind", "pytorch"}),
       OneOf({"--overlap", &values.overlap, "",
              "Whether sums run beside backward: yes, no, or auto: unless ranks are further apart "
              "on one node than where sums are hidden"},
             {"auto", "yes", "no"}),
       {"--cycle_ms", &values.cycle_ms, "X",
        "Sums start at multiples of so many ms only, as with HOROVOD_CYCLE_TIME; 0: at once"},
       {"--staging_gbs", &values.staging_gbs, "X",
        "GB/s at which gradients go to host memory and back, where they are summed there; 0: they "
        "are summed on the GPUs"},
       {"--node_input", &values.node_input, "X",
        "Images/s that the processors of a node decode (ddlbench loader); 0: never waited for"},
       {"--image_kb", &values.image_kb, "X", "kB of an image's file"},
       {"--nodes", &values.nodes, "N,...", "Numbers of nodes, each from 1 to 4096"},
       {"--ranks", &values.ranks, "N,...",
        "Numbers of GPUs, instead of --nodes; they fill node after node"},
       {"--json", &values.json, "", "Print all numbers as one JSON object"}});
}

}  // namespace bench
