// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_check.h"

#include <gtest/gtest.h>

#include "plan/net/hpcc_config.h"
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
    // The reference's means are rounded.
    EXPECT_LT(std::abs(c.ours - c.reference), 1) << c.case_name << " " << c.measure;
  }
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
