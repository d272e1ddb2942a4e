// SPDX-License-Identifier: Apache-2.0
#include "apps/lab/commands.h"

#include <string>

#include "apps/common/command_tree.h"

namespace cairn::apps {

void add_lab_commands(CommandTree& tree) {
  CLI::App& root = tree.root();
  CLI::App& bench = CommandTree::group(root, "bench", "measure this machine and Cairn on it");
  tree.add(bench, "runtime", "streams and tasks against plain sockets", make_bench_runtime);
  tree.add(bench, "drive", "what services and doors cost, each next to a baseline",
           make_bench_drive);
  tree.add(bench, "fabric", "host and box against a bare exchange of the same bytes",
           make_bench_fabric);
  tree.add(bench, "rpc", "a call between processes against the bare exchange of its bytes",
           make_bench_rpc);
  tree.add(bench, "kv", "the key-value store next to RocksDB and Redis", make_bench_kv);
  tree.add(bench, "volume", "elastic volumes next to plain drives and stripes", make_bench_volume);
  tree.add(bench, "sim", "how fast the models are, and how true", make_bench_sim);
  tree.add(bench, "rocksdb", "RocksDB on a drive of a box, with batching and without",
           make_bench_rocksdb);
  tree.add(bench, "ycsb", "RocksDB with a YCSB-like load in a folder", make_bench_ycsb);
  CLI::App& paper = CommandTree::group(bench, "paper", "run a paper's evaluation with Cairn");
  tree.add(paper, "i10", "figures of i10 as one page, next to the paper's", make_bench_paper_i10);
  tree.add(paper, "snis", "tables and figures of SNIS as one page, next to the paper's",
           make_bench_paper_snis);
  tree.add(paper, "leapio", "figures of LeapIO as one page, next to the paper's",
           make_bench_paper_leapio);
  CLI::App& plan = CommandTree::group(root, "plan", "models of drives and networks, for planning");
  tree.add(plan, "ssd", "one modelled SSD under a trace or a load", make_plan_ssd);
  tree.add(plan, "net", "a load on a modelled network", make_plan_net);
  tree.add(plan, "snis", "drives and a network, simulated until they agree", make_plan_snis);
  tree.add(plan, "capacity", "how many drives, boxes and links a load needs", make_plan_capacity);
  tree.add(plan, "fit", "a profile for a drive that fio measured", make_plan_fit);
  tree.add(plan, "validate", "the models against a reference", make_plan_validate);
  CLI::App& sim = CommandTree::group(root, "sim", "run Cairn in the simulated world");
  tree.add(sim, "echo", "an echo cluster, from a seed", make_sim_echo);
}

}  // namespace cairn::apps
