// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/files.h"
#include "plan/flash/mqsim_config.h"
#include "plan/snis/snis_load.h"
#include "plan/snis/snis_system.h"
#include "snis/phases.h"

namespace cairn::plan {
namespace {

const std::string kReference = CAIRN_REFERENCE_FOLDER "/../snis";

TEST(SnisCheck, TheLightTraceIsWithinTolerance) {
  ASSERT_TRUE(is_snis_reference(kReference));
  EXPECT_FALSE(is_snis_reference(CAIRN_REFERENCE_FOLDER));
  const auto found = check_snis_file(kReference);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_GT(found->size(), 100U);
  for (const Comparison& c : *found) {
    EXPECT_TRUE(c.ok()) << c.case_name << " " << c.measure << ": " << c.ours << ", reference "
                        << c.reference;
  }
}

TEST(SnisSystemOptions, TheAuthorsDriveIsTheirConfiguration) {
  const auto text = config::read_file(CAIRN_REFERENCE_FOLDER "/configs.json", 1 << 20);
  ASSERT_TRUE(text);
  auto config = parameters_from_mqsim(nlohmann::json::parse(*text)["authors_read2us"]);
  ASSERT_TRUE(config);
  config->write_back_pages = 300;
  config->cache_evicts_dirty_only = true;
  auto profile = load_system({.network = "star:11"});
  ASSERT_TRUE(profile);
  snis::System other = profile->system;
  other.drive = *config;
  const auto load = load_requests({.synthetic = "F_t_h", .requests = 1000});
  ASSERT_TRUE(load);
  std::vector<snis::Nanos> arrivals;
  for (const auto& request : load->requests) arrivals.push_back(request.arrival);
  const snis::SystemModels ours(profile->system);
  const snis::SystemModels theirs(other);
  EXPECT_EQ(snis::LocalStorage(ours, load->requests).run(arrivals),
            snis::LocalStorage(theirs, load->requests).run(arrivals));
}

}  // namespace
}  // namespace cairn::plan
