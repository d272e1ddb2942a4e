// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/ana.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "base/rng.h"

namespace cairn::fabric {
namespace {

using nvme::AnaState;

// A page of groups 1 to `count`, group i with i namespaces and state i % 4 + 1.
std::vector<std::byte> make_page(uint16_t count) {
  std::vector<std::byte> page(sizeof(nvme::AnaHeader));
  store(page, nvme::AnaHeader{.change_count = 9, .groups = count});
  for (uint32_t i = 1; i <= count; ++i) {
    nvme::AnaGroup group{.group_id = i, .namespaces = i};
    group.set_state(static_cast<AnaState>(i % 4 + 1));
    page.resize(page.size() + sizeof group);
    store(MutableBytes(page).last(sizeof group), group);
    page.resize(page.size() + i * sizeof(nvme::Le32));
  }
  return page;
}

TEST(AnaLog, FindsEachGroup) {
  const std::vector<std::byte> page = make_page(20);
  for (uint32_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(find_ana_state(page, i), static_cast<AnaState>(i % 4 + 1));
  }
  EXPECT_FALSE(find_ana_state(page, 21).has_value());
  EXPECT_FALSE(find_ana_state(page, 0).has_value());
}

TEST(AnaLog, BreaksOffWithoutHarm) {
  const std::vector<std::byte> page = make_page(5);
  for (size_t size = 0; size < page.size(); ++size) {
    find_ana_state(Bytes(page).first(size), 5);
    EXPECT_FALSE(find_ana_state(Bytes(page).first(size), 6).has_value());
  }
  Rng rng(1);
  for (int i = 0; i < 10000; ++i) {
    std::vector<std::byte> noise(rng.below(200));
    rng.fill(noise);
    find_ana_state(noise, 1);
  }
}

}  // namespace
}  // namespace cairn::fabric
