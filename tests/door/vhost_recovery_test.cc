// SPDX-License-Identifier: Apache-2.0
// A server dies with more requests than its successor takes at once, and the successor is asked to
// stop before it has taken them all: none is dropped.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "door/vhost_user/driver.h"
#include "door/vhost_user/inflight_format.h"
#include "door/vhost_user/options.h"
#include "door/vhost_user/ring.h"
#include "door/vhost_user/server.h"
#include "door/vhost_user/virtio_format.h"
#include "drive/source.h"
#include "env/sharing.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "world/sim/cluster.h"

namespace cairn::door_tests {
namespace {

using door::vhost_user::BlkStatus;
using door::vhost_user::Driver;
using door::vhost_user::Ring;
using door::vhost_user::VhostServer;
using task::Task;

constexpr const char* kDisk = "disk";
constexpr size_t kBlock = 4096;
// More than a queue has in flight.
constexpr size_t kRequests = door::vhost_user::kRequestsMax + 150;
constexpr uint16_t kQueueSize = 4096;

env::Address socket() { return env::Address::parse("unix:/run/vhost").value(); }

Task<void> serve(env::Env& env) {
  const drive::Spec spec{
      .kind = drive::Spec::Kind::kFile, .path = kDisk, .size = kRequests * kBlock};
  const auto source = drive::Source::make(env, spec).value();
  VhostServer server(env);
  const Result<void> served =
      co_await server.serve({.drive = {.name = "d", .description = "", .source = source.get()},
                             .at = socket(),
                             .core = {},
                             .waiting = door::vhost_user::Waiting::kInterrupt});
  EXPECT_TRUE(served.has_value());
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await server.close();
  co_await source->close(env);
}

// Memory that somebody else has mapped.
class BorrowedMemory final : public env::SharedMemory {
 public:
  explicit BorrowedMemory(MutableBytes bytes) { bytes_ = bytes; }
};

// A server of another make takes everything there is and dies.
void take_and_die(env::Env& env, Driver& driver, bool is_packed) {
  door::GuestMemory guest;
  EXPECT_TRUE(guest.add(0, std::make_unique<BorrowedMemory>(driver.memory())).has_value());
  const size_t size = door::vhost_user::inflight_region_size(kQueueSize, is_packed);
  const auto notes =
      env::sharing(env)->map_shared(driver.inflight(), {.size = size, .writable = true}).value();
  const door::vhost_user::DriverRingPlace& place = driver.ring(0).place();
  const uint16_t begin = is_packed ? door::vhost_user::kWrapBit : 0;
  const auto ring = Ring::make({.size = kQueueSize,
                                .descriptors = place.descriptors,
                                .driver = place.driver,
                                .device = place.device,
                                .is_packed = is_packed,
                                .has_event_index = true,
                                .has_indirect = false,
                                .base = {.available = begin, .used = begin},
                                .inflight = notes->bytes(),
                                .used_log_address = 0,
                                .log = nullptr},
                               guest);
  door::vhost_user::Chain chain;
  size_t taken = 0;
  while ((*ring)->take(chain) == Ring::Got::kChain) ++taken;
  EXPECT_EQ(taken, kRequests);
}

Task<void> write(Driver& driver, size_t block, size_t& written) {
  const std::vector<std::byte> data(kBlock, std::byte{1});
  const Result<BlkStatus> wrote = co_await driver.write(block * kBlock / 512, data, {});
  EXPECT_EQ(wrote.value(), BlkStatus::kOk);
  ++written;
}

Task<void> pass(env::Env& env, Duration time) {
  const Result<void> slept = co_await task::sleep_for(env, time);
  EXPECT_TRUE(slept.has_value());
}

Task<void> connect(env::Env& env, Driver& driver) {
  Result<void> connected = fail(Errc::kClosed, "not yet");
  while (!connected) {
    connected = co_await driver.connect(socket(), {});
    if (!connected) co_await pass(env, 1_ms);
  }
}

Task<void> use(env::Env& env, bool is_packed, size_t& written) {
  Driver driver(env, *env::sharing(env),
                {.is_packed = is_packed,
                 .has_indirect = false,
                 .queue_size = kQueueSize,
                 .depth = kRequests,
                 .request_max = kBlock});
  EXPECT_TRUE(driver.prepare().has_value());
  co_await connect(env, driver);
  driver.hang_up();
  co_await pass(env, 100_ms);
  task::Gate gate;
  for (size_t i = 0; i < kRequests; ++i) gate.spawn(write(driver, i, written));
  co_await pass(env, 1_ms);
  take_and_die(env, driver, is_packed);
  co_await connect(env, driver);
  const Result<void> left = co_await driver.leave({});
  EXPECT_TRUE(left.has_value());
  co_await pass(env, 1_ms);
  EXPECT_EQ(written, kRequests) << "a queue that was stopped has nothing in flight";
  co_await connect(env, driver);
  co_await gate.close();
  EXPECT_FALSE(driver.ring(0).is_broken()) << "a request completed twice";
  // And it goes on.
  size_t more = 0;
  co_await write(driver, 0, more);
  co_await driver.close();
}

class VhostRecovery : public testing::TestWithParam<bool> {};

TEST_P(VhostRecovery, AQueueThatIsStoppedHasServedWhatAnotherServerTook) {
  size_t written = 0;
  sim::Cluster cluster;
  sim::Node& server = cluster.node("server");
  server.start([](env::Env& env) { return serve(env); });
  sim::Node& guest = cluster.node("guest", {.beside = "server"});
  guest.start([&](env::Env& env) { return use(env, GetParam(), written); });
  EXPECT_TRUE(cluster.run_until([&] { return !guest.is_running(); }, 100_s)) << written;
  server.stop();
  EXPECT_TRUE(cluster.run_until_idle(10_s));
}

INSTANTIATE_TEST_SUITE_P(Layouts, VhostRecovery, testing::Bool(), [](const auto& layout) {
  return std::string(layout.param ? "Packed" : "Split");
});

}  // namespace
}  // namespace cairn::door_tests
