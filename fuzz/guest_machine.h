// SPDX-License-Identifier: Apache-2.0
// GuestMachine: memory that a guest has, a controller that it sees, and a driver of both. Memory
// that is not listed is poisoned: whoever still touches it is found.
#pragma once

#include <sanitizer/asan_interface.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "door/vfio_user/controller.h"
#include "task/deadline.h"
#include "testing/guest/driver.h"

namespace cairn::fuzz {

// Pages with nothing beside them, kept from input to input: making them anew takes longer than
// hundreds of commands. What one input left in them no other sees.
class Pages {
 public:
  explicit Pages(size_t size)
      : bytes_(new(std::align_val_t(4096)) std::byte[size]{}), size_(size) {}
  ~Pages() {
    ASAN_UNPOISON_MEMORY_REGION(bytes_, size_);
    ::operator delete[](bytes_, std::align_val_t(4096));
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  MutableBytes bytes() const { return {bytes_, size_}; }

 private:
  std::byte* bytes_;
  size_t size_;
};

// Pages as long as they are listed.
class Listed final : public env::SharedMemory {
 public:
  explicit Listed(MutableBytes bytes) {
    bytes_ = bytes;
    ASAN_UNPOISON_MEMORY_REGION(bytes_.data(), bytes_.size());
  }
  ~Listed() override { ASAN_POISON_MEMORY_REGION(bytes_.data(), bytes_.size()); }
};

class GuestMachine final : public door::vfio_user::DriverAccess {
 public:
  // Regions follow each other in the guest's memory and nowhere else; the last cannot be written.
  static constexpr size_t kRegions = 3;
  static constexpr uint64_t kAddress = 0x4000'0000;
  static constexpr std::array<uint64_t, kRegions> kSizes{64 << 10, 8 << 10, 8 << 10};
  static constexpr uint64_t kEnd = kAddress + kSizes[0] + kSizes[1] + kSizes[2];
  static constexpr uint16_t kVectors = 4;
  // Rings that no list names, whatever is read into the pages that are lists to somebody.
  static constexpr uint64_t kHiddenAddress = 0x000d'37c5'a91e'0000;

  struct Memory {
    std::array<Pages, kRegions> regions{Pages(kSizes[0]), Pages(kSizes[1]), Pages(kSizes[2])};
    Pages hidden{64 << 10};
    Pages doorbells{4096};
  };

  struct Options {
    bool is_told = false;  // see DeviceParts
    bool shadow = false;   // doorbells in its memory
  };
  // `pages` outlive it.
  GuestMachine(env::Env& env, Memory& pages, const Options& options)
      : env_(env), pages_(pages), options_(options), doorbells_(pages.doorbells.bytes()) {
    for (size_t i = 0; i < kRegions; ++i) list(i);
    auto hidden = std::make_unique<Listed>(pages.hidden.bytes());
    CHECK(memory.add(kHiddenAddress, std::move(hidden), true).has_value());
    for (const Pages& region : pages.regions) std::ranges::fill(region.bytes(), std::byte{0});
    std::ranges::fill(pages.hidden.bytes(), std::byte{0});
    std::ranges::fill(doorbells(), std::byte{0});
    const door::vfio_user::DriverOptions wanted{
        .entries = 64, .shadow = options.shadow, .step_timeout = 1_s, .look_every = 2_us};
    const auto make = [&](MutableBytes bytes, uint64_t address) {
      return std::make_unique<door::vfio_user::Driver>(
          env, *this, door::vfio_user::DriverMemory{.bytes = bytes, .address = address}, wanted);
    };
    driver = make(bytes(), kAddress);
    hidden_driver = make(pages.hidden.bytes(), kHiddenAddress);
  }

  static uint64_t address_of(size_t region) {
    uint64_t address = kAddress;
    for (size_t i = 0; i < region; ++i) address += kSizes[i];
    return address;
  }
  MutableBytes bytes() const { return pages_.regions[0].bytes(); }
  void list(size_t region) {
    auto listed = std::make_unique<Listed>(pages_.regions[region].bytes());
    CHECK(memory.add(address_of(region), std::move(listed), region != 2).has_value());
  }
  // Under whatever the device does.
  task::Task<void> unlist(size_t region) {
    device->abandon(address_of(region), kSizes[region]);
    const Result<void> removed = co_await memory.remove(address_of(region), kSizes[region]);
    CHECK(removed.has_value());
  }

  task::Task<void> plug_in(nvme::Registry& registry, const char* nqn) {
    Result<std::unique_ptr<door::vfio_user::Device>> made =
        co_await door::vfio_user::PciController::make(
            {.env = env_,
             .memory = memory,
             .doorbells = doorbells(),
             .is_told = options_.is_told,
             .raise = [](uint16_t vector) { CHECK(vector < kVectors); },
             .wake = {}},
            {.registry = registry,
             .control = CoreId(0),
             .nqn = nqn,
             .vectors = kVectors,
             .on_leave = {}});
    CHECK(made.has_value());
    device = std::move(*made);
  }
  // With whatever is in flight.
  task::Task<void> vanish() {
    taken_ += controller().figures().commands;
    device->abandon(0, UINT64_MAX);
    co_await device->close();
    device.reset();
  }
  task::Task<void> close() {
    if (device != nullptr) co_await vanish();
    co_await memory.clear();
  }
  // Commands of the guest that a device has taken.
  uint64_t taken() { return taken_ + (device == nullptr ? 0 : controller().figures().commands); }

  // Looks at the device again and again.
  task::Task<void> pass(Duration duration) {
    const Time until = env_.now() + duration;
    do {
      device->poll();
      const Result<void> slept = co_await task::sleep_for(env_, 2_us);
      CHECK(slept.has_value());
    } while (env_.now() < until);
  }
  // A controller that was reset, whatever came before, can be used.
  task::Task<void> start() { return start(*driver); }
  task::Task<void> start(door::vfio_user::Driver& by) {
    co_await device->reset();
    bool going = true;
    task::Gate looking;
    looking.spawn(look_while(going));
    const Result<void> started = co_await by.start();
    going = false;
    co_await looking.close();
    CHECK(started.has_value());
  }

  // door::vfio_user::DriverAccess
  task::Task<Result<void>> read(uint64_t offset, MutableBytes into) override {
    device->poll();
    device->read(offset, into);
    co_return Result<void>{};
  }
  task::Task<Result<void>> write(uint64_t offset, Bytes from) override {
    device->write(offset, from);
    co_return Result<void>{};
  }
  MutableBytes doorbells() override { return doorbells_.bytes(); }
  void ring(door::vfio_user::Doorbell /*doorbell*/, uint32_t /*value*/) override {}

  door::GuestMemory memory;
  std::unique_ptr<door::vfio_user::Device> device;
  std::unique_ptr<door::vfio_user::Driver> driver;
  std::unique_ptr<door::vfio_user::Driver> hidden_driver;  // its rings are at kHiddenAddress

 private:
  door::vfio_user::PciController& controller() {
    return static_cast<door::vfio_user::PciController&>(*device);
  }
  task::Task<void> look_while(const bool& going) {
    while (going) {
      device->poll();
      const Result<void> slept = co_await task::sleep_for(env_, 2_us);
      CHECK(slept.has_value());
    }
  }

  env::Env& env_;
  Memory& pages_;
  Options options_;
  Listed doorbells_;
  uint64_t taken_ = 0;  // by devices that are gone
};

}  // namespace cairn::fuzz
