// SPDX-License-Identifier: Apache-2.0
#include "volume/boxes/reservation_fence.h"

#include <memory>
#include <set>
#include <utility>

#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::volume {

using task::CancelToken;
using task::Task;

namespace {

constexpr std::string_view kFenceName = "arbiter's fence";
constexpr Duration kFenceLimit = 5_s;  // of each drive

}  // namespace

// The drive is opened only to do it.
Task<Result<void>> ReservationFence::expel(std::string uri, Registration::Expelled who, bool stays,
                                           CancelToken token) {
  task::Deadline deadline(env_, env_.now() + kFenceLimit, token);
  const BoxIdentity self = box_identity(kFenceName);
  auto admission = std::make_unique<Registration>(self, stays, std::move(who));
  Result<std::unique_ptr<fabric::RemoteDrive>> drive =
      co_await source_.open_as(std::move(uri), self, std::move(admission), deadline.token());
  if (!drive) co_return fail(drive.error());
  co_await (*drive)->close();
  co_return Result<void>();
}

Task<std::vector<MegaVolId>> ReservationFence::fence(std::string host,
                                                     std::vector<MegaVolInfo> drives,
                                                     CancelToken token) {
  const uint64_t key = box_identity(host).key;
  std::vector<Task<Result<void>>> all;
  all.reserve(drives.size());
  for (const MegaVolInfo& each : drives) {
    all.push_back(expel(each.uri, {.key = key, .besides = {}}, /*stays=*/true, token));
  }
  const std::vector<Result<void>> done = co_await task::when_all(std::move(all));
  std::vector<MegaVolId> unfenced;
  for (size_t i = 0; i < done.size(); ++i) {
    if (!done[i]) unfenced.push_back(drives[i].id);
  }
  co_return unfenced;
}

Task<Result<void>> ReservationFence::keep_only(std::vector<std::string> hosts, std::string uri,
                                               CancelToken token) {
  std::set<uint64_t> keys;
  for (const std::string& host : hosts) keys.insert(box_identity(host).key);
  co_return co_await expel(std::move(uri), {.key = {}, .besides = std::move(keys)}, /*stays=*/true,
                           token);
}

Task<Result<void>> ReservationFence::release(std::string uri, CancelToken token) {
  co_return co_await expel(std::move(uri), {.key = {}, .besides = std::set<uint64_t>()},
                           /*stays=*/false, token);
}

}  // namespace cairn::volume
