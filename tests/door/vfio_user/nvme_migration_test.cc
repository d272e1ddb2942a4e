// SPDX-License-Identifier: Apache-2.0
// A guest whose NVMe controller moves from server to server, to and fro, under I/O that is checked:
// commands rung for before the stop, put into the ring and not rung for, and requests for events
// all go on where they were.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/rig.h"
#include "nvme/controller/registry.h"
#include "nvme/format/event_format.h"
#include "nvme/format/io_format.h"
#include "testing/guest/client_access.h"
#include "testing/guest/driver.h"

namespace cairn::vfio_user_tests {
namespace {

WORLD_TEST_SUITE(VfioUserNvmeMigration);

const std::string kNqn = "nqn.2026-11.io.cairn:guest";
constexpr uint64_t kMemory = 1 << 20;
constexpr uint64_t kBase = 0x1'0000'0000;
constexpr uint32_t kBlock = 4096;
constexpr uint16_t kBurst = 12;  // commands at once

// Two servers, each with a controller of the same drive.
struct Servers {
  explicit Servers(env::Env& env) : registry(env) {
    for (auto& server : servers) server = std::make_unique<VfioUserServer>(env, SessionOptions{});
  }
  Task<void> open(env::Env& env, const Scene& scene) {
    nvme::SubsystemOptions options;
    options.nqn = kNqn;
    must(registry.add_subsystem(options));
    nvme::NamespaceOptions space;
    space.drive = *drive::Spec::parse("mem:size=1M,block=4096");
    co_await sure(registry.add_namespace(kNqn, space));
    for (size_t i = 0; i < servers.size(); ++i) {
      at[i] = scene.local_socket(i == 0 ? "here" : "there").value();
      must(servers[i]->add(
          "nvme", at[i],
          [this, control = env.core()](DeviceParts parts) {
            return PciController::make(std::move(parts), {.registry = registry,
                                                          .control = control,
                                                          .nqn = kNqn,
                                                          .vectors = kVectors,
                                                          .on_leave = {}});
          },
          Pace::kInterrupt));
    }
  }
  Task<void> close() {
    for (const auto& server : servers) co_await server->close();
    co_await registry.close();
  }

  nvme::Registry registry;
  std::array<std::unique_ptr<VfioUserServer>, 2> servers;
  std::array<env::Address, 2> at;
};

// The driver does not know that its device is somewhere else.
class MovingAccess final : public DriverAccess {
 public:
  Task<Result<void>> read(uint64_t offset, MutableBytes into) override {
    return access_->read(offset, into);
  }
  Task<Result<void>> write(uint64_t offset, Bytes from) override {
    return access_->write(offset, from);
  }
  MutableBytes doorbells() override { return {}; }
  void ring(Doorbell doorbell, uint32_t value) override { access_->ring(doorbell, value); }

  Task<void> connect(env::Env& env, const env::Address& at, const env::Descriptor& memory) {
    Result<std::unique_ptr<Client>> client = fail(Errc::kUnreachable, "not yet");
    // The server may still be putting the last one away.
    while (!client) {
      client = co_await Client::connect(env, at);
      EXPECT_TRUE(client || client.error() == Errc::kUnreachable);
    }
    client_ = std::move(*client);
    co_await sure(client_->map(kBase, memory, {.size = kMemory}));
    access_ = std::make_unique<ClientAccess>(*client_);
  }
  Task<void> leave() {
    co_await sure(access_->close());
    access_ = nullptr;
    client_ = nullptr;
  }
  Task<std::vector<std::byte>> stop_and_save() {
    co_await sure(client_->change_state(DeviceState::kStop));
    co_await sure(client_->change_state(DeviceState::kStopCopy));
    std::vector<std::byte> state = co_await sure(client_->read_state());
    co_await sure(client_->change_state(DeviceState::kStop));
    co_return state;
  }
  Task<void> stop_and_reset(DeviceState stopped) {
    co_await sure(client_->change_state(stopped));
    co_await sure(client_->reset());
  }
  Task<void> load_and_run(Bytes state) {
    co_await sure(client_->change_state(DeviceState::kStop));
    co_await sure(client_->change_state(DeviceState::kResuming));
    co_await sure(client_->write_state(state));
    co_await sure(client_->change_state(DeviceState::kStop));
    co_await sure(client_->change_state(DeviceState::kRunning));
  }

 private:
  std::unique_ptr<Client> client_;
  std::unique_ptr<ClientAccess> access_;
};

class NvmeGuest {
 public:
  NvmeGuest(env::Env& env, MutableBytes memory)
      : env_(env), driver_(env, access, {.bytes = memory, .address = kBase}, {.entries = 32}) {}

  Task<void> start() {
    co_await sure(driver_.start());
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(nvme::AdminOpcode::kAsynchronousEventRequest);
    sqe.cid = 999;
    driver_.admin_queue().submit(sqe);
    driver_.admin_queue().ring();
  }
  // Writes of blocks of this round, of which the last ones are not rung for.
  void submit(uint8_t round, uint16_t from, uint16_t count) {
    DriverQueue& queue = driver_.queue(1);
    for (uint16_t i = from; i < from + count; ++i) {
      std::ranges::fill(block(i), std::byte(static_cast<uint8_t>(round * 16 + i)));
      queue.submit(io(nvme::IoOpcode::kWrite, i));
      open_.insert(i);
    }
  }
  void ring() { driver_.queue(1).ring(); }
  Task<void> finish() {
    while (!open_.empty()) {
      driver_.queue(1).poll([&](const nvme::Cqe& cqe) {
        EXPECT_TRUE(cqe.get_status().ok());
        EXPECT_EQ(open_.erase(cqe.cid), 1u) << "answered once";
      });
      const Result<void> slept = co_await task::sleep_for(env_, 10_us);
      must(slept);
    }
  }
  Task<void> check(uint8_t round) {
    for (uint16_t i = 0; i < kBurst; ++i) {
      std::ranges::fill(block(i), std::byte{0});
      const nvme::Cqe cqe =
          co_await sure(driver_.execute(driver_.queue(1), io(nvme::IoOpcode::kRead, i)));
      EXPECT_TRUE(cqe.get_status().ok());
      const auto value = std::byte(static_cast<uint8_t>(round * 16 + i));
      EXPECT_EQ(std::ranges::count(block(i), value), kBlock) << i;
    }
  }
  // The request that was made at the start.
  Task<nvme::AsynchronousEvent> event() {
    std::optional<nvme::Cqe> told;
    while (!told) {
      driver_.admin_queue().poll([&](const nvme::Cqe& cqe) { told = cqe; });
      const Result<void> slept = co_await task::sleep_for(env_, 10_us);
      must(slept);
    }
    EXPECT_EQ(told->cid, 999);
    co_return nvme::AsynchronousEvent::decode(told->dw0);
  }

  MovingAccess access;

 private:
  MutableBytes block(uint16_t number) {
    return driver_.data().bytes.subspan(number * size_t{kBlock}, kBlock);
  }
  nvme::Sqe io(nvme::IoOpcode opcode, uint16_t number) {
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(opcode);
    sqe.nsid = 1;
    sqe.cid = number;
    nvme::BlockFields{.start = Lba(number), .blocks = 1}.encode(sqe);
    Driver::point(sqe, driver_.data().address + number * uint64_t{kBlock}, kBlock, {});
    return sqe;
  }

  env::Env& env_;
  Driver driver_;
  std::set<uint16_t> open_;
};

WORLD_TEST(VfioUserNvmeMigration, AControllerMovesToAndFroUnderItsCommands) {
  Servers servers(env);
  co_await servers.open(env, scene);
  env::Sharing& sharing = *env::sharing(env);
  const env::Descriptor hold = must(sharing.make_shared_memory(kMemory));
  const auto memory = must(sharing.map_shared(hold, {.size = kMemory}));
  NvmeGuest guest(env, memory->bytes());
  co_await guest.access.connect(env, servers.at[0], hold);
  co_await guest.start();
  for (uint8_t round = 0; round < 8; ++round) {
    guest.submit(round, 0, kBurst / 2);
    guest.ring();
    guest.submit(round, kBurst / 2, kBurst / 2);
    const std::vector<std::byte> state = co_await guest.access.stop_and_save();
    co_await guest.access.leave();
    co_await guest.access.connect(env, servers.at[(round + 1) % 2], hold);
    co_await guest.access.load_and_run(state);
    guest.ring();
    co_await guest.finish();
    co_await guest.check(round);
  }
  // What was asked for before the first move is told after the last.
  co_await sure(servers.registry.resize_namespace(kNqn, 1, 2 << 20));
  const nvme::AsynchronousEvent event = co_await guest.event();
  EXPECT_EQ(event, nvme::kNamespacesChanged);
  co_await guest.access.leave();
  co_await servers.close();
}

WORLD_TEST(VfioUserNvmeMigration, AResetEndsEveryStateThatIsNotRunning) {
  Servers servers(env);
  co_await servers.open(env, scene);
  env::Sharing& sharing = *env::sharing(env);
  const env::Descriptor hold = must(sharing.make_shared_memory(kMemory));
  const auto memory = must(sharing.map_shared(hold, {.size = kMemory}));
  NvmeGuest guest(env, memory->bytes());
  co_await guest.access.connect(env, servers.at[0], hold);
  uint8_t round = 0;
  for (const DeviceState stopped :
       {DeviceState::kStop, DeviceState::kStopCopy, DeviceState::kResuming}) {
    co_await guest.start();
    co_await guest.access.stop_and_reset(stopped);
    co_await guest.start();
    guest.submit(++round, 0, kBurst);
    guest.ring();
    co_await guest.finish();
    co_await guest.check(round);
    co_await guest.access.stop_and_reset(DeviceState::kRunning);
  }
  co_await guest.access.leave();
  co_await servers.close();
}

}  // namespace
}  // namespace cairn::vfio_user_tests
