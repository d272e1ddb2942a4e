// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/ana.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "fabric/host/admin.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/log_format.h"

namespace cairn::fabric {

namespace {

// Groups of one controller that we look at.
constexpr uint32_t kGroupsMax = 4096;

}  // namespace

std::optional<nvme::AnaState> find_ana_state(Bytes page, uint32_t group) {
  if (page.size() < sizeof(nvme::AnaHeader)) return std::nullopt;
  const auto header = load<nvme::AnaHeader>(page);
  page = page.subspan(sizeof header);
  for (uint16_t i = 0; i < header.groups; ++i) {
    if (page.size() < sizeof(nvme::AnaGroup)) return std::nullopt;
    const auto each = load<nvme::AnaGroup>(page);
    if (each.group_id == group) return each.state();
    const uint64_t length = sizeof each + uint64_t{each.namespaces} * sizeof(nvme::Le32);
    if (length > page.size()) return std::nullopt;
    page = page.subspan(length);
  }
  return std::nullopt;
}

task::Task<Result<nvme::AnaState>> read_ana_state(HostSession& session, uint32_t group,
                                                  task::CancelToken token) {
  const nvme::IdentifyController& identity = session.identity();
  if ((identity.multipath & nvme::Cmic::kAna) == 0) co_return nvme::AnaState::kOptimized;
  const uint32_t groups = std::clamp<uint32_t>(identity.ana_groups, 1, kGroupsMax);
  std::vector<std::byte> page(sizeof(nvme::AnaHeader) + groups * sizeof(nvme::AnaGroup));
  const LogRequest request{
      .page = nvme::LogPage::kAna, .specific = nvme::kAnaGroupsOnly, .nsid = 0};
  const Result<void> got = co_await get_log(session, request, page, token);
  if (!got) co_return fail(got.error());
  co_return find_ana_state(page, group).value_or(nvme::AnaState::kOptimized);
}

}  // namespace cairn::fabric
