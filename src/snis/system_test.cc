// SPDX-License-Identifier: Apache-2.0
#include "snis/system.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "snis/coupled.h"
#include "snis/iterations.h"
#include "trace/shape.h"
#include "trace/synthetic.h"

namespace cairn::snis {
namespace {

System small_system(uint32_t targets, uint32_t initiators) {
  System system;
  system.topology = net::star(targets + initiators);
  system.network.bin = 100 * net::kMicrosecond;
  place_apart(system, targets, initiators);
  return system;
}

std::vector<trace::Record> drawn(const char* name, uint64_t each, uint32_t targets,
                                 uint32_t initiators) {
  trace::Synthetic load = trace::synthetic_of(*trace::paper_trace(name), 11);
  load.reads.requests = load.writes.requests = each;
  trace::Shaper shaper(
      {.targets = targets, .initiators = initiators, .placement = trace::Placement::kStriped});
  std::vector<trace::Record> requests = trace::draw(load);
  for (trace::Record& request : requests) request = shaper.shape(request);
  return requests;
}

void expect_fixed_point_is_coupled(const System& system, const char* trace) {
  ASSERT_FALSE(check(system));
  const SystemModels models(system);
  const std::vector<trace::Record> requests = drawn(trace, 150, 2, 3);
  LocalStorage storage(models, requests);
  Iterations run(models, requests, storage, {.until = Until::kUnchanged, .iterations = 400});
  while (!run.done()) run.advance();
  ASSERT_TRUE(run.unchanged());
  const Iteration coupled = run_coupled(models, requests);
  EXPECT_EQ(coupled.times, run.last().times);
  EXPECT_EQ(coupled.network.data_packets, run.last().network.data_packets);
  EXPECT_EQ(run.steps().back().metrics.unfinished, 0U);
}

TEST(SnisSystem, ModelsOfDriveAndNetworkReachTheCoupledLoop) {
  for (const char* trace : {"F_t_h", "F_s_m"}) {
    SCOPED_TRACE(trace);
    expect_fixed_point_is_coupled(small_system(2, 3), trace);
  }
}

TEST(SnisSystem, EveryKindOfNetworkReachesTheCoupledLoop) {
  System fluid = small_system(2, 3);
  fluid.network.mode = net::Mode::kFluid;
  expect_fixed_point_is_coupled(fluid, "F_t_h");
  for (const net::Control control : {net::Control::kDctcp, net::Control::kCubic}) {
    System tcp = small_system(2, 3);
    tcp.network = net::tcp_parameters(control);
    expect_fixed_point_is_coupled(tcp, "F_t_h");
  }
}

TEST(SnisSystem, HostsOfTargetsAndInitiatorsAreApart) {
  System system;
  system.topology = net::clos({});
  place_apart(system, 1, 10);
  EXPECT_EQ(system.target_hosts, std::vector<uint32_t>{0});
  EXPECT_TRUE(
      std::ranges::all_of(system.initiator_hosts, [](uint32_t host) { return host >= 64; }));
  EXPECT_FALSE(check(system));
  place_apart(system, 200, 128);
  EXPECT_FALSE(check(system));
}

TEST(SnisSystem, WhatCannotBeSimulatedIsTold) {
  System system = small_system(1, 1);
  system.initiator_hosts = system.target_hosts;
  EXPECT_TRUE(check(system)->contains("cannot be of a target and of an initiator"));
  system = small_system(1, 1);
  system.target_hosts = {9};
  EXPECT_TRUE(check(system)->contains("host 9"));
  system = small_system(1, 1);
  system.drive.channels = 0;
  EXPECT_TRUE(check(system)->contains("channels"));
}

}  // namespace
}  // namespace cairn::snis
