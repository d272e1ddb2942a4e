// SPDX-License-Identifier: Apache-2.0
// A guest with an NVMe controller, whose server is killed or loses its power at any moment, seed by
// seed. The guest comes again, resets the controller, leaves with commands in flight, and checks
// every block: what was acknowledged is there after a kill, what was flushed after a power loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/server.h"
#include "nvme/controller/registry.h"
#include "nvme/format/io_format.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/fabric/oracle.h"
#include "testing/guest/client_access.h"
#include "testing/guest/driver.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::door::vfio_user {
namespace {

using fabric_tests::kBlock;
using fabric_tests::Oracle;
using task::Task;

constexpr const char* kServer = "server";
constexpr const char* kDisk = "disk";
constexpr const char* kNqn = "nqn.2026-11.io.cairn:guest";
constexpr uint16_t kWorkers = 4;                       // each with a queue and blocks of its own
constexpr uint64_t kOwnBlocks = 64;                    // of a worker
constexpr size_t kBatch = 8;                           // commands of a worker at once
constexpr uint64_t kBlocksMax = 4;                     // of a command
constexpr uint64_t kSlot = (kBlocksMax + 1) * kBlock;  // its data, and a list
constexpr uint64_t kMemory = 1 << 20;
constexpr uint64_t kAddress = 0x1'0000'0000;

env::Address socket() { return env::Address::parse("unix:/run/nvme").value(); }

Task<bool> pause_for(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  co_return slept.has_value();
}

// What a guest has while it is connected.
struct Machine {
  std::unique_ptr<Client> client;
  env::Descriptor hold;
  std::unique_ptr<env::SharedMemory> memory;
  std::unique_ptr<ClientAccess> access;
  std::unique_ptr<Driver> driver;
  bool is_over = false;  // workers leave everything where it is
};

// A command and what it may do to its blocks.
struct Order {
  nvme::IoOpcode opcode = nvme::IoOpcode::kRead;
  Oracle::Asked asked;
  bool durable = false;
  bool is_done = false;
};

class NvmeWorkload final : public sim::Workload {
 public:
  explicit NvmeWorkload(bool loses_power)
      : loses_power_(loses_power), oracle_(kWorkers * kOwnBlocks), done_(kWorkers) {}

  void start(sim::Cluster& cluster) override {
    cluster.node(kServer, {.cores = 2}).start([this](env::Env& env) { return serve(env); });
    cluster.node("guest", {.beside = kServer}).start([this](env::Env& env) { return use(env); });
  }
  uint64_t progress() const override { return std::ranges::min(done_); }
  std::string check(sim::Cluster&) override { return oracle_.wrong(); }

 private:
  // --- the server

  Task<void> serve(env::Env& env) {
    if (loses_power_) oracle_.box_started();
    nvme::Registry registry(env);
    nvme::SubsystemOptions subsystem;
    subsystem.nqn = kNqn;
    if (!registry.add_subsystem(subsystem)) oracle_.complain("no subsystem");
    nvme::NamespaceOptions space;
    space.drive = {
        .kind = drive::Spec::Kind::kFile, .path = kDisk, .size = kWorkers * kOwnBlocks * kBlock};
    bool goes_on = true;
    Result<uint32_t> added = fail(Errc::kClosed, "not yet");
    while (goes_on && !added) {
      added = co_await registry.add_namespace(kNqn, space);
      if (!added) goes_on = co_await pause_for(env, 10_ms);
    }
    if (added) co_await open_door(env, registry);
    co_await registry.close();
  }
  Task<void> open_door(env::Env& env, nvme::Registry& registry) {
    VfioUserServer server(env, {.greeting_timeout = 2_s, .log = {}});
    const auto make = [&registry, control = env.core()](DeviceParts parts) {
      return PciController::make(std::move(parts), {.registry = registry,
                                                    .control = control,
                                                    .nqn = kNqn,
                                                    .vectors = kVectors,
                                                    .on_leave = {}});
    };
    constexpr Pace kPaces[] = {Pace::kAdaptive, Pace::kInterrupt};
    if (server.add("nvme", socket(), make, kPaces[starts_++ % 2])) {
      const Result<void> stopped = co_await task::sleep_until(env, Time::never(), env.stop_token());
      (void)stopped;
    }
    co_await server.drain(env.now() + 1_s);
    co_await server.close();
  }

  // --- the guest

  Task<void> use(env::Env& env) {
    bool goes_on = true;
    while (goes_on) {
      Machine machine;
      const bool is_there = co_await plug_in(env, machine);
      if (is_there) co_await run(env, machine);
      if (machine.access != nullptr) {
        const Result<void> closed = co_await machine.access->close();
        (void)closed;
      }
      goes_on = co_await pause_for(env, 1_ms);
    }
  }
  static Task<bool> plug_in(env::Env& env, Machine& machine) {
    Result<std::unique_ptr<Client>> client =
        co_await Client::connect(env, socket(), env.stop_token());
    if (!client) co_return false;
    machine.client = std::move(*client);
    env::Sharing& sharing = machine.client->sharing();
    machine.hold = std::move(sharing.make_shared_memory(kMemory).value());
    machine.memory = sharing.map_shared(machine.hold, {.size = kMemory}).value();
    const Result<void> mapped =
        co_await machine.client->map(kAddress, machine.hold, {.size = kMemory}, env.stop_token());
    if (!mapped) co_return false;
    machine.access = std::make_unique<ClientAccess>(*machine.client);
    machine.driver = std::make_unique<Driver>(
        env, *machine.access, DriverMemory{.bytes = machine.memory->bytes(), .address = kAddress},
        DriverOptions{
            .queues = kWorkers, .entries = 16, .step_timeout = 10_s, .look_every = 50_us});
    co_return true;
  }
  // Until the server is gone or the guest leaves; resets the controller under its commands.
  Task<void> run(env::Env& env, Machine& machine) {
    bool stays = true;
    while (stays) {
      const Result<void> started = co_await machine.driver->start();
      if (!started) co_return;
      machine.is_over = false;
      std::vector<Task<void>> tasks;
      tasks.push_back(attend(env, machine));
      for (uint16_t i = 0; i < kWorkers; ++i) tasks.push_back(work(env, machine, i));
      co_await task::when_all(std::move(tasks));
      stays = !env.stop_token().requested() && env.rng().bernoulli(0.5);
    }
  }
  // Looks whether the server is still there, for a while.
  static Task<void> attend(env::Env& env, Machine& machine) {
    const bool is_short = env.rng().bernoulli(0.5);
    const Time until =
        env.now() +
        Duration{static_cast<int64_t>(env.rng().below(is_short ? 5'000'000 : 500'000'000))};
    bool goes_on = true;
    while (goes_on && env.now() < until) {
      goes_on = co_await pause_for(env, 1_ms);
      const Result<uint32_t> status = co_await machine.driver->read32(0x1c);
      goes_on = goes_on && status && (*status & 3) == 1;
    }
    machine.is_over = true;
  }

  Task<void> work(env::Env& env, Machine& machine, uint16_t index) {
    while (!machine.is_over) {
      std::vector<Order> orders = submit(env, machine, index);
      DriverQueue& queue = machine.driver->queue(index + 1);
      queue.ring();
      size_t open = orders.size();
      while (open > 0 && !machine.is_over) {
        queue.poll([&](const nvme::Cqe& cqe) {
          --open;
          finish(machine, index, orders, cqe);
        });
        const bool goes_on = co_await pause_for(env, 20_us);
        if (!goes_on) co_return;
      }
      if (open == 0) ++done_[index];
      const bool goes_on = co_await pause_for(env, 100_us);
      if (!goes_on) co_return;
    }
  }

  static DriverMemory slot(const Machine& machine, uint16_t index, size_t order) {
    return machine.driver->data().part((index * kBatch + order) * kSlot, kSlot);
  }
  // A flush of the worker's blocks, or reads and writes of some of them that do not overlap.
  std::vector<Order> submit(env::Env& env, const Machine& machine, uint16_t index) {
    std::vector<Order> orders;
    const uint64_t own = index * kOwnBlocks;
    if (env.rng().below(4) == 0) {
      orders.push_back({.opcode = nvme::IoOpcode::kFlush, .asked = {.lba = own}});
    } else {
      const size_t count = 1 + env.rng().below(kBatch);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t share = kOwnBlocks / kBatch;
        const uint64_t blocks = 1 + env.rng().below(kBlocksMax);
        const uint64_t lba = own + i * share + env.rng().below(share - blocks + 1);
        orders.push_back(draw(env, lba, blocks));
      }
    }
    for (size_t i = 0; i < orders.size(); ++i) put(machine, index, i, orders[i]);
    return orders;
  }
  Order draw(env::Env& env, uint64_t lba, uint64_t blocks) {
    Order order;
    if (env.rng().below(2) == 0) {
      order.asked = oracle_.begin_read(lba, blocks);
      return order;
    }
    order.opcode = nvme::IoOpcode::kWrite;
    order.durable = env.rng().below(8) == 0;
    order.asked = oracle_.begin_write(lba, blocks, oracle_.new_value());
    return order;
  }
  static void put(const Machine& machine, uint16_t index, size_t number, const Order& order) {
    const DriverMemory room = slot(machine, index, number);
    const Oracle::Asked& asked = order.asked;
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(order.opcode);
    sqe.nsid = 1;
    sqe.cid = static_cast<uint16_t>(number);
    if (order.opcode != nvme::IoOpcode::kFlush) {
      nvme::BlockFields{.start = Lba(asked.lba),
                        .blocks = static_cast<uint32_t>(asked.count),
                        .force_unit_access = order.durable}
          .encode(sqe);
      const DriverMemory list = room.part(kBlocksMax * kBlock, kBlock);
      Driver::point(sqe, room.address, asked.count * kBlock, list);
    }
    for (uint64_t i = 0; order.opcode == nvme::IoOpcode::kWrite && i < asked.count; ++i) {
      fabric_tests::fill_block(room.bytes.subspan(i * kBlock, kBlock), asked.value, asked.lba + i);
    }
    machine.driver->queue(index + 1).submit(sqe);
  }
  void finish(const Machine& machine, uint16_t index, std::vector<Order>& orders,
              const nvme::Cqe& cqe) {
    const size_t number = cqe.cid;
    if (number >= orders.size() || orders[number].is_done) {
      return oracle_.complain("a command was answered that nobody waits for");
    }
    Order& order = orders[number];
    order.is_done = true;
    const bool succeeded = cqe.get_status().ok();
    if (order.opcode == nvme::IoOpcode::kWrite) {
      oracle_.end_write(order.asked, succeeded, order.durable);
    } else if (succeeded && order.opcode == nvme::IoOpcode::kRead) {
      const DriverMemory room = slot(machine, index, number);
      oracle_.end_read(order.asked, room.bytes.first(order.asked.count * kBlock));
    } else if (succeeded) {
      oracle_.end_flush(order.asked.lba, kOwnBlocks);
    }
  }

  const bool loses_power_;
  Oracle oracle_;
  std::vector<uint64_t> done_;  // batches of each worker
  size_t starts_ = 0;
};

sim::Scenario scenario_of(const char* name, bool loses_power) {
  using Kind = sim::Fault::Kind;
  sim::Scenario scenario{.name = name};
  scenario.make = [loses_power] { return std::make_unique<NvmeWorkload>(loses_power); };
  scenario.faults.nodes = {kServer};
  scenario.faults.disks = {{.node = kServer, .path = kDisk}};
  const Kind blow = loses_power ? Kind::kCrash : Kind::kKill;
  scenario.faults.kinds = {blow,
                           blow,
                           blow,
                           blow,
                           Kind::kPause,
                           Kind::kDiskStall,
                           Kind::kDiskReadErrors,
                           Kind::kDiskWriteErrors};
  scenario.faults.count_max = 12;
  scenario.fault_phase = 3_s;
  scenario.healed_phase = 60_s;
  scenario.progress_healed = 50;
  scenario.seeds = 20;
  return scenario;
}

TEST(VfioUserNvmeFaults, WhatWasAcknowledgedOutlivesTheServer) {
  EXPECT_EQ(run_scenario(scenario_of("vfio_user_kill", false)), "");
}
TEST(VfioUserNvmeFaults, WhatWasFlushedOutlivesAPowerLoss) {
  EXPECT_EQ(run_scenario(scenario_of("vfio_user_power", true)), "");
}

}  // namespace
}  // namespace cairn::door::vfio_user
