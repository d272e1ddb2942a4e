// SPDX-License-Identifier: Apache-2.0
// The guest's driver, a client, a session and the NVMe controller together, in every world.
#include <gtest/gtest.h>

#include <algorithm>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/rig.h"
#include "nvme/controller/registry.h"
#include "nvme/format/io_format.h"
#include "testing/guest/client_access.h"
#include "testing/guest/driver.h"

namespace cairn::vfio_user_tests {
namespace {

const std::string kNqn = "nqn.2026-11.io.cairn:guest";
constexpr uint64_t kMemory = 2 << 20;
constexpr uint64_t kBase = 0x1'0000'0000;

// A box that serves one memory drive to guests.
struct NvmeRig {
  explicit NvmeRig(env::Env& its) : env(its), registry(its), server(its, {}) {}

  Task<void> open(const Scene& scene, Pace pace) {
    nvme::SubsystemOptions options;
    options.nqn = kNqn;
    must(registry.add_subsystem(options));
    nvme::NamespaceOptions space;
    space.drive = *drive::Spec::parse("mem:size=4M,block=4096");
    co_await sure(registry.add_namespace(kNqn, space));
    address = scene.local_socket("nvme").value();
    must(server.add(
        "nvme", address,
        [this](DeviceParts parts) {
          return PciController::make(std::move(parts), {.registry = registry,
                                                        .control = env.core(),
                                                        .nqn = kNqn,
                                                        .vectors = kVectors,
                                                        .on_leave = {}});
        },
        pace));
  }
  Task<void> close() {
    co_await server.close();
    co_await registry.close();
  }

  env::Env& env;
  nvme::Registry registry;
  VfioUserServer server;
  env::Address address;
};

nvme::Sqe io(Driver& driver, nvme::IoOpcode opcode, uint64_t lba, uint32_t blocks,
             uint64_t offset) {
  nvme::Sqe sqe;
  sqe.opcode = static_cast<uint8_t>(opcode);
  sqe.nsid = 1;
  nvme::BlockFields{.start = Lba(lba), .blocks = blocks}.encode(sqe);
  const DriverMemory data = driver.data();
  Driver::point(sqe, data.address + offset, blocks * 4096ull,
                data.part(data.bytes.size() - 4096, 4096));
  return sqe;
}

Task<void> use_drive(env::Env& env, const env::Address& at, DriverOptions options) {
  const std::unique_ptr<Client> client = co_await sure(Client::connect(env, at));
  env::Sharing& sharing = client->sharing();
  const env::Descriptor descriptor = must(sharing.make_shared_memory(kMemory));
  const auto memory = must(sharing.map_shared(descriptor, {.size = kMemory}));
  co_await sure(client->map(kBase, descriptor, {.size = kMemory}));
  {
    ClientAccess access(*client);
    Driver driver(env, access, {.bytes = memory->bytes(), .address = kBase}, options);
    co_await sure(driver.start());
    const auto interrupt = co_await sure(client->listen(kMsix, 1));
    for (const uint32_t blocks : {1u, 2u, 3u, 32u}) {
      const MutableBytes data = driver.data().bytes;
      const size_t bytes = blocks * size_t{4096};
      std::ranges::fill(data.first(bytes), std::byte(static_cast<uint8_t>(blocks)));
      nvme::Cqe cqe = co_await sure(
          driver.execute(driver.queue(1), io(driver, nvme::IoOpcode::kWrite, 7, blocks, 0)));
      EXPECT_TRUE(cqe.get_status().ok());
      co_await sure_of(*interrupt);
      std::ranges::fill(data.first(bytes), std::byte{0});
      cqe = co_await sure(
          driver.execute(driver.queue(1), io(driver, nvme::IoOpcode::kRead, 7, blocks, 0)));
      EXPECT_TRUE(cqe.get_status().ok());
      EXPECT_TRUE(std::ranges::all_of(data.first(bytes), [&](std::byte byte) {
        return byte == std::byte(static_cast<uint8_t>(blocks));
      }));
    }
    co_await sure(driver.stop());
    co_await sure(access.close());
  }
}

Task<void> serve_guests(env::Env& env, const Scene& scene, Pace pace) {
  NvmeRig rig(env);
  co_await rig.open(scene, pace);
  co_await use_drive(env, rig.address, {});
  co_await rig.close();
}

Task<void> serve_shadows(env::Env& env, const Scene& scene, Pace pace) {
  NvmeRig rig(env);
  co_await rig.open(scene, pace);
  co_await use_drive(env, rig.address, {.shadow = true});
  co_await rig.close();
}

WORLD_TEST_SUITE(VfioUserNvme);

WORLD_TEST(VfioUserNvme, PolledControllerServesItsGuest) {
  co_await serve_guests(env, scene, Pace::kPolling);
}
WORLD_TEST(VfioUserNvme, AdaptiveControllerServesItsGuest) {
  co_await serve_guests(env, scene, Pace::kAdaptive);
}
WORLD_TEST(VfioUserNvme, ControllerByMessagesServesItsGuest) {
  co_await serve_guests(env, scene, Pace::kInterrupt);
}
WORLD_TEST(VfioUserNvme, ShadowDoorbellsWorkAtEveryPace) {
  co_await serve_shadows(env, scene, Pace::kPolling);
  co_await serve_shadows(env, scene, Pace::kAdaptive);
  co_await serve_shadows(env, scene, Pace::kInterrupt);
}

}  // namespace
}  // namespace cairn::vfio_user_tests
