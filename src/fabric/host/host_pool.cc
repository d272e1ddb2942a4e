// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/host_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::fabric {

namespace {

// Whether a controller made for one does for the other. Secrets are compared by what they are:
// each drive may have read its own copy from the file.
bool is_same_way(const HostSession::Options& a, const HostSession::Options& b) {
  if (a.address != b.address || a.nqn != b.nqn) return false;
  const auto bare = [](HostOptions options) {
    const HostOptions usual;
    options.credentials = nullptr;
    options.loss_timeout = usual.loss_timeout;
    options.quiesce = usual.quiesce;
    options.retries_max = usual.retries_max;
    return options;
  };
  if (bare(a.host) != bare(b.host)) return false;
  const HostCredentials* mine = a.host.credentials.get();
  const HostCredentials* theirs = b.host.credentials.get();
  if (mine == theirs) return true;
  return mine != nullptr && theirs != nullptr && *mine == *theirs;
}

}  // namespace

HostPool::~HostPool() {
  CHECK(entries_.empty() && closing_ == 0, "what was taken from a pool is released before it goes");
}

void HostPool::name(HostOptions& options) {
  if (options.host_nqn.empty() && options.host_id == HostOptions().host_id) {
    if (self_.host_nqn.empty()) name_host(env_, self_);
    options.host_nqn = self_.host_nqn;
    options.host_id = self_.host_id;
  }
  name_host(env_, options);
}

HostController& HostPool::take(const HostSession::Options& options) {
  for (Entry& each : entries_) {
    // One that has stopped will never connect again.
    if (each.controller->is_stopped() || !is_same_way(each.controller->options(), options)) {
      continue;
    }
    ++each.users;
    return *each.controller;
  }
  Entry& entry = entries_.emplace_back(Entry{std::make_unique<HostController>(env_, options), 1});
  HostController& controller = *entry.controller;
  controller.start();
  return controller;
}

task::Task<void> HostPool::release(HostController& controller) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& each) { return each.controller.get() == &controller; });
  CHECK(found != entries_.end(), "a controller goes back to the pool it was taken from");
  if (--found->users > 0) co_return;
  // From here on another drive gets a new one.
  const std::unique_ptr<HostController> last = std::move(found->controller);
  entries_.erase(found);
  ++closing_;
  co_await last->close();
  --closing_;
}

}  // namespace cairn::fabric
