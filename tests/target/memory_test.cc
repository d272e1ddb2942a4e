// SPDX-License-Identifier: Apache-2.0
// What a connection costs is what docs/fabric.md says.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <vector>

#include "fabric/target/connection.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

TEST(Memory, OfAConnectionIsBounded) {
  EXPECT_LE(fabric::TargetConnection::memory_max(128), 147'000u);
  EXPECT_LE(sizeof(fabric::TcpCommand), 512u);
  EXPECT_LE(sizeof(fabric::TargetConnection), 2304u);
}

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

using RealWorld = testing::Types<conformance::Epoll>;

template <class World>
class ConnectionMemory : public Conformance<World> {
  conformance::Setting setting() const override { return {.cores = 1}; }
};
TYPED_TEST_SUITE(ConnectionMemory, RealWorld, WorldNames);

size_t heap_in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// The first host pays for what hosts share.
WORLD_TEST(ConnectionMemory, OfAnIdleQueueIsSmall) {
  constexpr size_t kHosts = 32;
  Box box(env);
  co_await box.open(scene.any_port());
  std::vector<std::unique_ptr<RawHost>> hosts;
  const auto arrive = [&]() -> RawHost& {
    hosts.push_back(std::make_unique<RawHost>(env));
    return *hosts.back();
  };
  co_await arrive().arrive(box.address);
  const size_t before = heap_in_use();
  for (size_t i = 0; i < kHosts; ++i) {
    RawHost& admin = arrive();
    co_await admin.arrive(box.address);
    co_await arrive().join(box.address, admin, 1);
  }
  const size_t each = (heap_in_use() - before) / kHosts;
  EXPECT_LE(each, 110u * 1024) << "an admin and an I/O queue, both ends, and their controller";
  hosts.clear();
  co_await box.close();
}

#endif

}  // namespace
}  // namespace cairn::target_tests
