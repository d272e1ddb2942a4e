// SPDX-License-Identifier: Apache-2.0
#include "env/sharing.h"

#include <cstdint>
#include <span>

#include "base/error.h"
#include "env/env.h"

namespace cairn::env {

void SignalOp::start() { signal_.start_wait(*this); }
void SignalOp::cancel() { signal_.cancel_wait(*this); }
void LocalReadOp::start() { stream_.start_read(*this); }
void LocalReadOp::cancel() { stream_.cancel_read(*this); }
void LocalWriteOp::start() { stream_.start_write(*this); }
void LocalWriteOp::cancel() { stream_.cancel_write(*this); }
void LocalHangUpOp::start() { stream_.start_hang_up(*this); }
void LocalHangUpOp::cancel() { stream_.cancel_hang_up(*this); }

Result<void> check_descriptors(std::span<const Descriptor* const> descriptors) {
  if (descriptors.size() > LocalStream::kDescriptorsMax) {
    return fail(Errc::kInvalid, "more descriptors than one write carries",
                static_cast<int32_t>(descriptors.size()));
  }
  for (const Descriptor* descriptor : descriptors) {
    if (descriptor == nullptr || !descriptor->is_valid()) {
      return fail(Errc::kInvalid, "a descriptor to send holds nothing");
    }
  }
  return {};
}

namespace {
struct EndOfRound final : Poller {
  bool poll() override { return false; }
};
}  // namespace

// A poller may take any of them off the list, so the place in it is kept by turning the list: who
// is looked at goes to its end, behind a mark that ends the round when it comes to the front.
bool poll_all(List<Poller, Poller>& pollers) {
  if (pollers.empty()) return false;
  if (pollers.front() == pollers.back()) return pollers.front()->poll();
  bool found = false;
  EndOfRound end;
  pollers.push_back(end);
  for (Poller* poller = pollers.pop_front(); poller != &end; poller = pollers.pop_front()) {
    pollers.push_back(*poller);
    found = poller->poll() || found;
  }
  return found;
}

// Not a call of Env: the worlds that have it implement it beside Env, and nobody else knows of it.
Sharing* sharing(Env& env) { return dynamic_cast<Sharing*>(&env); }

}  // namespace cairn::env
