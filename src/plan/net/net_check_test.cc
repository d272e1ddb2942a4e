// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/net/hpcc_config.h"
#include "plan/net/listing_check.h"
#include "plan/net/net_listing.h"
#include "plan/net/net_runs.h"

namespace cairn::plan {
namespace {

using nlohmann::json;

const std::string kFolder = CAIRN_NET_REFERENCE_FOLDER;

TEST(NetCheck, EveryRunIsTheReferencesToTheNanosecond) {
  const auto found = check_net_file(kFolder, {});
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_GT(found->size(), 80U);
  for (const Comparison& c : *found) {
    EXPECT_EQ(c.ours, c.reference) << c.case_name << " " << c.measure;
    EXPECT_EQ(c.tolerance, 0) << c.case_name << " " << c.measure;
  }
}

// Every flow, PAUSE frame, drop and mark in 284 nodes: paths, acknowledgements that wait with data,
// PAUSE at hosts and at three layers of switches, DCQCN with several flows and priorities per host,
// and what is lost where headroom is too small.
TEST(NetCheck, EveryClosRunIsTheReferencesToTheNanosecond) {
  const auto found = check_net_file(kFolder + "/clos", {});
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(std::ranges::count(*found, "flows with its time", &Comparison::measure), 6);
  EXPECT_EQ(std::ranges::count(*found, "PFC frames in its order", &Comparison::measure), 1);
  for (const Comparison& c : *found) {
    EXPECT_EQ(c.ours, c.reference) << c.case_name << " " << c.measure;
    EXPECT_EQ(c.tolerance, 0) << c.case_name << " " << c.measure;
  }
}

TEST(NetCheck, AFlowThatTakesOneNanosecondLongerIsSeen) {
  const auto topology =
      parse_hpcc_topology("3 1 2\n2\n0 2 10Gbps 0.001ms 0\n1 2 10Gbps 0.001ms 0\n");
  ASSERT_TRUE(topology) << topology.error().text;
  const auto same_of = [&](int64_t time_ns) {
    const json run = {
        {"config", json::object()},
        {"totals", {{"finished", 1}}},
        {"flows",
         {{{"src", 0}, {"dst", 1}, {"bytes", 1000}, {"start_ns", 5}, {"fct_ns", time_ns}}}}};
    const auto listing = parse_net_listing(run, *topology);
    EXPECT_TRUE(listing) << listing.error().text;
    return check_net_listing("file", "run", *listing, *topology).front();
  };
  // A frame and its acknowledgement over two links: 838 ns and 47 ns on each, and 1 us.
  constexpr int64_t kTime = 2 * (838 + 47 + 2000);
  EXPECT_TRUE(same_of(kTime).ok());
  EXPECT_FALSE(same_of(kTime + 1).ok());
  EXPECT_FALSE(same_of(kTime - 1).ok());
}

TEST(NetCheck, TableIsKnownByItsHeading) {
  EXPECT_TRUE(is_net_reference(kFolder));
  EXPECT_TRUE(is_net_reference(kFolder + "/runs.csv"));
  EXPECT_FALSE(is_net_reference(kFolder + "/configs.json"));
  EXPECT_FALSE(is_net_reference(kFolder + "/missing"));
}

std::string config_problem(const json& config) {
  const auto parsed = parse_hpcc_config(config);
  return parsed ? "" : parsed.error().text;
}

TEST(HpccConfig, ProblemsNameTheSetting) {
  EXPECT_EQ(config_problem({{"RATE_AI", "40"}}), "RATE_AI is a rate like \"40Mb/s\", not '40'");
  EXPECT_EQ(config_problem({{"HAS_WIN", 1}}), "HAS_WIN is modelled as 0 only, not 1");
  EXPECT_EQ(config_problem({{"KMIN_MAP", "2 10000000000 40"}}),
            "KMIN_MAP is a count and as many pairs of rate and value, not '2 10000000000 40'");
  EXPECT_EQ(config_problem({{"KMIN_MAP", "1 10000000000 40"}}),
            "KMIN_MAP has links of 10000000000 b/s, KMAX_MAP or PMAX_MAP has not");
  EXPECT_TRUE(config_problem({{"BUFER_SIZE", 1}}).contains("has no setting 'BUFER_SIZE'"));
  EXPECT_TRUE(config_problem({{"CC_MODE", 3}}).contains("CC_MODE is 0 (none) or 1 (DCQCN)"));
  EXPECT_TRUE(config_problem({{"BUFFER_SIZE", 0}}).contains("buffer_bytes must be"));
  EXPECT_EQ(config_problem(json::array()), "is not an object of settings");
}

TEST(HpccTopology, ProblemsSayWhere) {
  const auto problem = [](const char* text) {
    const auto parsed = parse_hpcc_topology(text);
    return parsed ? "" : parsed.error().text;
  };
  EXPECT_TRUE(problem("").contains("begins with the numbers"));
  EXPECT_TRUE(problem("3 4 2").contains("begins with the numbers"));
  EXPECT_TRUE(problem("3 1 2 7").contains("has no node for its switch 1 of 1"));
  EXPECT_TRUE(problem("3 1 2 2 0 2 10Gbps 0.001ms 0").contains("link 2 of 2 is not two nodes"));
  EXPECT_TRUE(problem("3 1 1 2 0 2 10 0.001ms 0").contains("link 1 of 1 is not two nodes"));
  EXPECT_TRUE(problem("3 1 1 2 0 2 1Gbps 0.001ms 0.1").contains("loses frames at random"));
  EXPECT_NE(problem("3 1 1 2 0 2 1Gbps 0.001ms 0"), "");  // host 1 hangs at nothing
}

TEST(NetListing, ProblemsNameTheFlow) {
  net::Topology topology;
  const uint32_t hosts[] = {topology.add_host("a"), topology.add_host("b")};
  const uint32_t center = topology.add_switch("s");
  for (const uint32_t host : hosts) topology.connect(host, center, {});
  json run = {{"config", json::object()},
              {"totals", json::object()},
              {"flows", {{{"src", 0}, {"dst", 1}, {"bytes", 9}, {"start_ns", 5}}}}};
  const auto problem = [&](const char* key, const json& value) {
    json changed = run;
    changed["flows"][0][key] = value;
    const auto parsed = parse_net_listing(changed, topology);
    return parsed ? "" : parsed.error().text;
  };
  EXPECT_EQ(problem("src", 0), "");
  EXPECT_EQ(problem("src", 2), "flow 0 src 2 is no host of its network");
  EXPECT_EQ(problem("dst", 0), "flow 0 goes from a host to itself");
  EXPECT_EQ(problem("bytes", "many"), "flow 0 needs bytes, from 1 to 2^40");
  EXPECT_EQ(problem("start_ns", -1), "flow 0 needs start_ns, at most 1000 s");
  EXPECT_EQ(problem("pg", 8), "flow 0 needs pg, from 1 to 7");
  EXPECT_EQ(problem("dport", 65'536), "flow 0 needs dport, at most 65535");
  EXPECT_FALSE(parse_net_listing(json::array(), topology));
  run["pfc"] = {{1, 2, 3}};
  EXPECT_EQ(problem("src", 0), "pfc 0 is not a list of ns, node, neighbour and 0 or 1");
  run["pfc"] = json::array();
  run["flows"] = json::array();
  EXPECT_EQ(parse_net_listing(run, topology).error().text, "lists no flows");
}

TEST(NetRuns, NamesTellNetworkAndFlows) {
  const auto incast = net_run("incast4_2MB_dcqcn", 4, json::array(), 1);
  ASSERT_TRUE(incast);
  EXPECT_EQ(incast->topology.hosts().size(), 5U);
  ASSERT_EQ(incast->flows.size(), 4U);
  EXPECT_EQ(incast->flows[3].source, 4U);
  EXPECT_EQ(incast->flows[3].bytes, 2'000'000U);
  EXPECT_FALSE(incast->drawn);
  const auto trace = net_run("clos256_F_s_h_dcqcn", 100, json::array(), 1);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->flows.size(), 100U);
  EXPECT_TRUE(trace->drawn);
  EXPECT_FALSE(net_run("ring_1MB", 4, json::array(), 1));
  EXPECT_FALSE(net_run("incast4_dcqcn", 4, json::array(), 1));
  EXPECT_FALSE(net_run("clos256_other", 4, json::array(), 1));
}

TEST(NetRuns, ListedFlowsAreTaken) {
  const json listed = {{{"name", "clos256_F_t_l"},
                        {"fct",
                         {{{"src", 0}, {"dst", 200}, {"bytes", 700}, {"start_ns", 5}},
                          {{"src", 3}, {"dst", 0}, {"bytes", 900}, {"start_ns", 4}}}}}};
  const auto run = net_run("clos256_F_t_l", 2, listed, 1);
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_FALSE(run->drawn);
  EXPECT_EQ(run->flows[0].source, 3U);
  EXPECT_EQ(run->flows[1].start, 5 * net::kNanosecond);
  json bad = listed;
  bad[0]["fct"][0]["dst"] = 9999;
  EXPECT_EQ(net_run("clos256_F_t_l", 2, bad, 1).error().text,
            "fct_per_flow.json: dst 9999 is no host of its network");
  bad[0]["fct"][0]["dst"] = "x";
  EXPECT_FALSE(net_run("clos256_F_t_l", 2, bad, 1));
}

}  // namespace
}  // namespace cairn::plan
