// SPDX-License-Identifier: Apache-2.0
#include "volume/reporter.h"

#include <vector>

#include "task/deadline.h"

namespace cairn::volume {

using task::CancelToken;
using task::Task;

namespace {

constexpr Duration kCallLimit = 5_s;

}  // namespace

void Reporter::start() {
  if (is_reporting_) return;
  is_reporting_ = true;
  parts_.gate.spawn(report());
}

Task<void> Reporter::report() {
  auto& [env, link, lease, table, closing, gate] = parts_;
  while (table.has_unreported() && lease.is_held() && !closing.requested()) {
    task::Deadline deadline(env, env.now() + kCallLimit, closing.token());
    const Result<std::vector<Mapping>> told =
        co_await link.report(lease.session(), table.unreported(kMappingsMax), deadline.token());
    if (told) {
      waiting_since_ = Time::never();
      for (const Mapping& mapping : *told) table.apply(mapping);
      moved();
      continue;
    }
    if (told.error() == Errc::kDenied || told.error() == Errc::kNotFound) lease.lose();
    if (waiting_since_ == Time::never()) waiting_since_ = env.now();
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env, retry_, closing.token());
  }
  is_reporting_ = false;
  moved();
}

Task<Result<void>> Reporter::known(CancelToken token) {
  while (!is_known()) {
    if (const Result<void> still = usable_(); !still) co_return still;
    const Result<void> waited = co_await moved_.wait(token);
    if (!waited) co_return waited;
  }
  co_return Result<void>();
}

void Reporter::settled(bool is_so) {
  if (is_so) is_settling_ = false;
  moved();
}

void Reporter::moved() {
  moved_.set();
  moved_.reset();
}

}  // namespace cairn::volume
