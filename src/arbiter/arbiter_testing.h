// SPDX-License-Identifier: Apache-2.0
// A pool of test media, an arbiter that leads it, and operators' verbs, on one simulated core.
#pragma once

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "meta/local_store.h"
#include "task/deadline.h"
#include "testing/stack/stacks.h"
#include "volume/medium_testing.h"

namespace cairn::arbiter {

// Fences hosts at test media, and can be told not to.
class TestFence final : public Fence {
 public:
  explicit TestFence(volume::TestMedia& media) : media_(media) {}
  task::Task<std::vector<MegaVolId>> fence(std::string host, std::vector<MegaVolInfo> drives,
                                           task::CancelToken) override {
    std::vector<MegaVolId> left;
    for (const MegaVolInfo& each : drives) {
      volume::TestMedium& medium = *media_.at(each.uri);
      if (is_broken || medium.is_down || medium.is_cut_off) {
        left.push_back(each.id);
      } else {
        medium.fence(host);
      }
    }
    if (left.empty()) fenced.push_back(std::move(host));
    co_return left;
  }
  task::Task<Result<void>> keep_only(std::vector<std::string> hosts, std::string uri,
                                     task::CancelToken) override {
    if (is_broken) co_return fail(Errc::kUnreachable, "a box does not answer");
    media_.at(uri)->keep_only(hosts);
    co_return Result<void>();
  }
  task::Task<Result<void>> release(std::string uri, task::CancelToken) override {
    media_.at(uri)->keep_only({});
    co_return Result<void>();
  }
  bool is_broken = false;
  std::vector<std::string> fenced;

 private:
  volume::TestMedia& media_;
};

// A store whose commits take a millisecond, as those of a medium do.
class SlowStore final : public meta::Store {
 public:
  SlowStore(env::Env& env, meta::Store& below) : env_(env), below_(below) {}
  task::Task<Result<meta::Committed>> commit(meta::Batch batch, task::CancelToken token) override {
    const Result<void> slept = co_await task::sleep_for(env_, 1_ms, token);
    if (!slept) co_return fail(slept.error());
    co_return co_await below_.commit(std::move(batch), token);
  }
  task::Task<Result<std::optional<meta::Entry>>> get(std::string key,
                                                     task::CancelToken token) override {
    return below_.get(std::move(key), token);
  }
  task::Task<Result<meta::Page>> list(meta::ListOptions options, task::CancelToken token) override {
    return below_.list(std::move(options), token);
  }
  task::Task<Result<meta::Lease>> grant(Duration ttl, task::CancelToken token) override {
    return below_.grant(ttl, token);
  }
  task::Task<Result<Duration>> keep_alive(meta::LeaseId lease, task::CancelToken token) override {
    return below_.keep_alive(lease, token);
  }
  task::Task<Result<void>> revoke(meta::LeaseId lease, task::CancelToken token) override {
    return below_.revoke(lease, token);
  }
  task::Task<Result<std::unique_ptr<meta::Watch>>> watch(meta::Range range, meta::Revision from,
                                                         task::CancelToken token) override {
    return below_.watch(std::move(range), from, token);
  }
  task::Task<Result<void>> compact(meta::Revision upto, task::CancelToken token) override {
    return below_.compact(upto, token);
  }
  task::Task<void> close() override { return below_.close(); }

 private:
  env::Env& env_;
  meta::Store& below_;
};

inline constexpr uint64_t kTestExtent = volume::kExtentBytesMin;

// Media "m0", "m1"... of so many extents each, the label's included.
inline volume::TestMedia test_media(size_t count, uint64_t extents) {
  volume::TestMedia media;
  for (size_t i = 0; i < count; ++i) {
    media[fmt::format("m{}", i)] =
        std::make_unique<volume::TestMedium>(extents * kTestExtent, i + 1);
  }
  return media;
}

// An arbiter over a store, until close().
class TestArbiter {
 public:
  TestArbiter(env::Env& env, meta::Store& store, volume::TestMedia& media, Fence& fence,
              const std::string& host, const LoadSource* loads = nullptr, Tenant* tenant = nullptr)
      : env_(env),
        source_(env, media),
        host_(
            env,
            {.store = store, .source = source_, .fence = fence, .loads = loads, .tenant = tenant},
            {.arbiter = {.host = host, .lease = 10_s, .retry = 20_ms, .extent_bytes = kTestExtent},
             .election_ttl = 1_s}) {
    gate_.spawn(host_.run());
  }
  ArbiterHost& host() { return host_; }
  ArbiterHost::Use use() { return std::move(*host_.use()); }
  task::Task<bool> wait_until_leading() {
    for (int i = 0; i < 1000 && !host_.use(); ++i) {
      const Result<void> slept = co_await task::sleep_for(env_, 10_ms);
      if (!slept) co_return false;
    }
    co_return host_.use().has_value();
  }
  // Until everything given back is free again.
  task::Task<void> settle() {
    for (int i = 0; i < 1000; ++i) {
      {
        const ArbiterHost::Use arbiter = use();
        uint64_t left = 0;
        for (const auto& [id, member] : arbiter->pool().members()) left += member.cleaning;
        for (const auto& [id, volume] : arbiter->pool().volumes()) {
          left += volume.record.is_leaving ? 1 : 0;
        }
        if (left == 0) co_return;
      }
      const Result<void> slept = co_await task::sleep_for(env_, 10_ms);
      if (!slept) co_return;
    }
    ADD_FAILURE() << "something is never cleared";
  }
  task::Task<void> add_all(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const ArbiterHost::Use arbiter = use();
      const Result<MegaVolInfo> added =
          co_await arbiter->add_mega_vol({.uri = fmt::format("m{}", i)});
      EXPECT_TRUE(added) << (added ? "" : added.error().text());
    }
  }
  uint64_t free() {
    uint64_t free = 0;
    for (const auto& [id, member] : use()->pool().members()) free += member.extents.free();
    return free;
  }
  task::Task<void> close() {
    host_.stop();
    co_await gate_.close();
  }

 private:
  env::Env& env_;
  volume::TestSource source_;
  ArbiterHost host_;
  task::Gate gate_;
};

// Who may have an extent of a drive.
struct Owner {
  VolumeId family;
  uint32_t extent = 0;
  bool is_copy = false;
  friend bool operator==(const Owner&, const Owner&) = default;
};

// What is wrong between the pool and the media: an extent that two have, one that nobody has and
// that is not clear, or that nobody gets any more. Empty: nothing. While a commit is under way some
// extents are used and not yet owned.
inline std::string audit(const Pool& pool, const volume::TestMedia& media, bool is_quiet = true) {
  std::map<std::pair<uint16_t, uint32_t>, Owner> owned;
  std::map<uint16_t, uint64_t> legs;
  std::string wrong;
  const auto own = [&](const MapEntry& entry, const Owner& owner) {
    for (size_t i = 0; i < entry.size(); ++i) {
      const volume::Leg leg = entry.leg(i);
      const auto [there, is_first] =
          owned.emplace(std::pair(leg.mega_vol.value(), leg.extent), owner);
      legs[leg.mega_vol.value()] += is_first ? 1 : 0;
      // A copy is of one volume alone; others are shared by those that descend from each other.
      if (!is_first && (there->second != owner || owner.is_copy)) {
        wrong =
            fmt::format("extent {} of drive {} has two owners", leg.extent, leg.mega_vol.value());
      }
    }
  };
  for (const auto& [id, volume] : pool.volumes()) {
    for (uint32_t extent = 0; extent < volume.table.size(); ++extent) {
      own(volume.table[extent], {.family = volume.record.family, .extent = extent});
    }
    for (const auto& [extent, place] : volume.copies) {
      own(place, {.family = volume.record.family, .extent = extent, .is_copy = true});
    }
  }
  if (!wrong.empty()) return wrong;
  const uint64_t blocks = pool.record.extent_bytes / volume::TestMedium::kBlock;
  for (const auto& [id, member] : pool.members()) {
    const volume::TestMedium& medium = *media.at(member.info.uri);
    uint64_t used = 0;
    for (uint32_t extent = 1; extent < member.info.extents; ++extent) {
      used += member.extents.is_used(extent) ? 1 : 0;
      if (member.extents.is_used(extent)) continue;
      if (owned.contains({id.value(), extent})) return "an extent of a volume counts as free";
      for (uint64_t block = extent * blocks; block < (extent + 1) * blocks; ++block) {
        if (!medium.is_zero(block)) {
          return fmt::format("free extent {} of drive {} is not clear", extent, id.value());
        }
      }
    }
    if (member.legs != legs[id.value()]) return "a drive's legs are counted wrong";
    const uint64_t known = member.legs + member.cleaning;
    if (used < known || (is_quiet && used != known)) {
      return fmt::format("drive {}: {} extents are used, {} owned and {} to be cleared", id.value(),
                         used, member.legs, member.cleaning);
    }
  }
  return "";
}

}  // namespace cairn::arbiter
