// SPDX-License-Identifier: Apache-2.0
// live_fuzz serve: a box of two subsystems; prints its port, ends with SIGTERM.
// live_fuzz attack PORT COMMANDS [SEED [ASSOCIATIONS]]: mutants against it; prints what happened.
// live_fuzz.py runs one against the other and watches the box's memory.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/live/attack.h"
#include "task/sync.h"
#include "testing/target/box.h"
#include "world/epoll/world.h"
#include "world/uring/world.h"

namespace cairn::live_fuzz {
namespace {

using target_tests::Box;
using target_tests::BoxOptions;
using task::Task;

int run_world(uint32_t cores, const env::Program& program) {
  env::WorldOptions options;
  options.cpus.assign(cores, -1);
  options.handle_signals = true;
  Result<void> ran = uring::UringWorld(options).run(program);
  if (!ran && ran.error() == Errc::kUnsupported) ran = epoll::EpollWorld(options).run(program);
  if (!ran) fmt::print(stderr, "live_fuzz: {}\n", ran.error().text());
  return ran ? 0 : 1;
}

Task<void> serve(env::Env& env) {
  BoxOptions options;
  options.queue_entries_max = 128;
  options.drives = {"mem:size=16M", "mem:size=4M"};
  Box box(env, options);
  co_await box.open(env::Address::loopback(0));
  nvme::NamespaceOptions neighbour;
  neighbour.drive = drive::Spec::parse("mem:size=8M").value();
  const Result<uint32_t> added =
      co_await box.registry().add_namespace(target_tests::kClosedNqn, neighbour);
  conformance::must(added);
  fmt::print("{}\n", box.address.port);
  std::fflush(stdout);
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  if (stopped) co_return;  // it never is
  co_await box.close();
}

int report_text(const AttackReport& report) {
  fmt::print(
      "{{\"sent\": {}, \"answered\": {}, \"r2ts\": {}, \"associations\": {}, \"term_reqs\": {}, "
      "\"neighbour_writes\": {}, \"neighbour_reads\": {}, \"wrong\": \"{}\"}}\n",
      report.sent, report.answered, report.r2ts, report.associations, report.term_reqs,
      report.neighbour_writes, report.neighbour_reads, report.wrong);
  return report.wrong.empty() ? 0 : 1;
}

int main_of(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "serve") return run_world(2, serve);
  if (verb != "attack" || argc < 4) {
    fmt::print(stderr, "live_fuzz serve | live_fuzz attack PORT COMMANDS [SEED [ASSOCIATIONS]]\n");
    return 2;
  }
  const auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  const AttackOptions options{.box = env::Address::loopback(static_cast<uint16_t>(number(2, 0))),
                              .commands = number(3, 0),
                              .associations = static_cast<uint32_t>(number(5, 4)),
                              .seed = number(4, 1)};
  AttackReport report;
  const int failed = run_world(1, [&](env::Env& env) { return attack(env, options, report); });
  return report_text(report) + failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cairn::live_fuzz

int main(int argc, char** argv) { return cairn::live_fuzz::main_of(argc, argv); }
