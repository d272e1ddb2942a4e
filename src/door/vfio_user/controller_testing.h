// SPDX-License-Identifier: Apache-2.0
// A guest without a machine: memory, a driver and a controller on one simulated core, the registry
// on another where there are several.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "door/vfio_user/controller.h"
#include "door/vfio_user/limits.h"
#include "env/call.h"
#include "nvme/format/io_format.h"
#include "task/deadline.h"
#include "testing/drive/seen_source.h"
#include "testing/guest/driver.h"
#include "world/sim/cluster.h"

namespace cairn::door::vfio_user {

inline const std::string kGuestNqn = "nqn.2026-11.io.cairn:guest";

// Page-aligned memory of the heap.
class HeapMemory final : public env::SharedMemory {
 public:
  explicit HeapMemory(size_t size)
      : data_(static_cast<std::byte*>(std::aligned_alloc(4096, size)), &std::free) {
    bytes_ = {data_.get(), size};
    std::ranges::fill(bytes_, std::byte{0});
  }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> data_;
};

struct GuestOptions {
  bool is_told = false;
  DriverOptions driver{};
  uint64_t memory = 4_MiB;
  uint16_t vectors = 8;
  uint32_t block = 512;  // of the drive
};

// The memory of a guest, its controller and its driver. Closed before it goes.
class Guest final : public DriverAccess {
 public:
  static constexpr uint64_t kAddress = 0x4000'0000;

  Guest(env::Env& env, const GuestOptions& options)
      : interrupts(options.vectors), env_(env), options_(options), page_(4096) {
    auto memory = std::make_unique<HeapMemory>(options.memory);
    bytes = memory->bytes();
    EXPECT_TRUE(memory_.add(kAddress, std::move(memory)));
    driver = std::make_unique<Driver>(env, *this, DriverMemory{.bytes = bytes, .address = kAddress},
                                      options.driver);
  }

  MutableBytes bytes;
  std::unique_ptr<Device> device;
  std::unique_ptr<Driver> driver;
  int left = 0;

  DeviceParts parts() {
    return {.env = env_,
            .memory = memory_,
            .doorbells = page_.bytes(),
            .is_told = options_.is_told,
            .raise = [this](uint16_t vector) { ++interrupts.at(vector); }};
  }
  PciControllerOptions controller_options(nvme::Registry& registry) {
    return {.registry = registry,
            .control = CoreId(0),
            .nqn = kGuestNqn,
            .vectors = options_.vectors,
            .on_leave = [this] { ++left; }};
  }
  task::Task<void> plug_in(nvme::Registry& registry) {
    Result<std::unique_ptr<Device>> made =
        co_await PciController::make(parts(), controller_options(registry));
    EXPECT_TRUE(made) << made.error().text();
    device = std::move(*made);
    if (!options_.is_told) pumps_.spawn(pump());
  }
  task::Task<void> start(nvme::Registry& registry) {
    co_await plug_in(registry);
    const Result<void> started = co_await driver->start();
    EXPECT_TRUE(started) << started.error().text();
  }
  task::Task<void> unplug() {
    stop_.request();
    co_await device->close();
    device.reset();
  }
  task::Task<void> close() {
    if (device != nullptr) co_await unplug();
    stop_.request();
    co_await pumps_.close();
    co_await memory_.clear();
  }
  PciController& controller() { return static_cast<PciController&>(*device); }
  door::GuestMemory& memory() { return memory_; }
  MutableBytes page() { return page_.bytes(); }

  // DriverAccess
  task::Task<Result<void>> read(uint64_t offset, MutableBytes into) override {
    device->read(offset, into);
    co_return Result<void>{};
  }
  task::Task<Result<void>> write(uint64_t offset, Bytes from) override {
    device->write(offset, from);
    co_return Result<void>{};
  }
  MutableBytes doorbells() override { return options_.is_told ? MutableBytes() : page_.bytes(); }
  void ring(Doorbell doorbell, uint32_t value) override {
    ++rings;
    store(page_.bytes().subspan(doorbell.offset()), value);
    device->poll();
  }

  // A read or write of whole blocks at an offset of the data memory.
  nvme::Sqe io(nvme::IoOpcode opcode, uint64_t lba, uint32_t blocks, uint64_t offset) {
    nvme::Sqe sqe;
    sqe.opcode = static_cast<uint8_t>(opcode);
    sqe.nsid = 1;
    nvme::BlockFields{.start = Lba(lba), .blocks = blocks}.encode(sqe);
    const DriverMemory data = driver->data();
    const DriverMemory list = data.part(data.bytes.size() - 8192, 8192);
    Driver::point(sqe, data.address + offset, uint64_t{blocks} * options_.block, list);
    return sqe;
  }
  task::Task<nvme::StatusCode> run(nvme::Sqe sqe, uint16_t queue = 1) {
    const Result<nvme::Cqe> cqe = co_await driver->execute(driver->queue(queue), sqe);
    EXPECT_TRUE(cqe) << cqe.error().text();
    co_return cqe ? cqe->get_status().code() : nvme::StatusCode::kInternalError;
  }
  task::Task<nvme::StatusCode> run_admin(nvme::Sqe sqe) { return run(sqe, 0); }
  uint32_t block() const { return options_.block; }
  MutableBytes data(uint64_t offset, uint64_t size) {
    return driver->data().bytes.subspan(offset, size);
  }
  uint32_t status() {
    std::array<std::byte, 4> word{};
    device->read(0x1c, word);
    return load<uint32_t>(word);
  }

  std::vector<int> interrupts;
  int rings = 0;

 private:
  task::Task<void> pump() {
    while (!stop_.requested()) {
      if (device != nullptr) device->poll();
      const Result<void> slept = co_await task::sleep_for(env_, 1_us, stop_.token());
      if (!slept) co_return;
    }
  }

  env::Env& env_;
  GuestOptions options_;
  door::GuestMemory memory_;
  HeapMemory page_;
  task::CancelSource stop_;
  task::Gate pumps_;
};

inline void fill_pattern(MutableBytes bytes, uint8_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte(static_cast<uint8_t>(seed + i * 7 + i / 256));
  }
}

// Runs a body on the last core of a node, with a registry on the first that serves one drive.
class ControllerTest : public ::testing::TestWithParam<uint32_t> {
 public:
  struct Scene {
    env::Env& env;
    nvme::Registry& registry;
  };

 protected:
  using Body = std::function<task::Task<void>(env::Env&, nvme::Registry&)>;
  std::string drive = "mem:size=4M,block=512";
  bool is_watched = false;
  std::unique_ptr<drive::SeenSource> seen;  // what the drive was asked, if it is watched
  nvme::SubsystemOptions subsystem;

  void run(Body body) {
    body_ = std::move(body);
    done_ = false;
    sim::Cluster cluster;
    cluster.node("box", {.cores = GetParam()}).start([this](env::Env& env) { return main(env); });
    ASSERT_TRUE(cluster.run_until([this] { return done_; }, 10'000_s)) << cluster.trace_tail();
    cluster.run_for(1_ms);
  }

 private:
  task::Task<void> main(env::Env& env) {
    {
      nvme::Registry registry(env);
      subsystem.nqn = kGuestNqn;
      EXPECT_TRUE(registry.add_subsystem(subsystem));
      nvme::NamespaceOptions space;
      space.drive = *drive::Spec::parse(drive);
      if (is_watched) {
        auto source = drive::Source::make(env, space.drive);
        EXPECT_TRUE(source);
        seen = std::make_unique<drive::SeenSource>(std::move(*source));
        space.source = seen.get();
      }
      const Result<uint32_t> added = co_await registry.add_namespace(kGuestNqn, space);
      EXPECT_TRUE(added) << added.error().text();
      co_await env::call_on(env, CoreId(env.core_count() - 1),
                            [&](env::Env& there) { return body_(there, registry); });
      co_await registry.close();
      if (seen != nullptr) co_await seen->close(env);
    }
    done_ = true;
  }
  Body body_;
  bool done_ = false;
};

}  // namespace cairn::door::vfio_user
