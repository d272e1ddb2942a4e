// SPDX-License-Identifier: Apache-2.0
// A client that copies a guest's memory while its controller runs: it has what the controller
// wrote, and is not told of more than that.
#include "door/vfio_user/dirty_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "door/vfio_user/controller_testing.h"
#include "testing/sim_test.h"

namespace cairn::door::vfio_user {
namespace {

using env::Env;
using nvme::IoOpcode;
using nvme::Registry;
using nvme::StatusCode;
using task::Task;

constexpr uint64_t kPage = 4096;
constexpr uint16_t kSlots = 12;  // commands at once
constexpr uint64_t kSlotBytes = 3 * kPage;

// Reads of one or two blocks into places of their own, some of them within pages.
class BusyGuest {
 public:
  BusyGuest(Env& env, Registry& registry)
      : guest(env, {.memory = 1_MiB, .block = kPage}),
        log(guest.memory(), [this] { guest.device->note_writes(); }),
        env_(env),
        registry_(registry) {}

  Task<void> start() {
    co_await guest.start(registry_);
    for (uint64_t lba = 0; lba < 8; ++lba) {
      fill_pattern(guest.data(0, kPage), static_cast<uint8_t>(lba * 31));
      const StatusCode written = co_await guest.run(guest.io(IoOpcode::kWrite, lba, 1, 0));
      EXPECT_EQ(written, StatusCode::kSuccess);
    }
  }
  // The guest's own writes are not the device's to note, so it clears no memory while it is copied.
  void read(uint16_t slot, uint64_t lba, uint32_t blocks, uint64_t within) {
    nvme::Sqe sqe = guest.io(IoOpcode::kRead, lba, blocks, slot * kSlotBytes + within);
    sqe.cid = slot;
    busy_[slot] = true;
    queue().submit(sqe);
    queue().ring();
    guest.device->poll();
  }
  void read_something(Rng& rng) {
    const auto slot = static_cast<uint16_t>(rng.below(kSlots));
    if (busy_[slot]) return;
    const bool is_aligned = rng.below(2) == 0;
    read(slot, rng.below(7), is_aligned ? 2 : 1, is_aligned ? 0 : 4 * rng.below(1024));
  }
  void take() {
    queue().poll([this](const nvme::Cqe& cqe) {
      EXPECT_TRUE(cqe.get_status().ok());
      busy_[cqe.cid] = false;
    });
  }
  Task<void> finish() {
    while (std::ranges::any_of(busy_, [](bool is_busy) { return is_busy; })) {
      co_await pass(1_us);
      take();
    }
  }
  Task<void> pass(Duration time) {
    const Result<void> slept = co_await task::sleep_for(env_, time);
    EXPECT_TRUE(slept);
  }

  // Pages of the guest's memory that were written to.
  std::vector<uint64_t> report() {
    const std::vector<std::byte> bitmap = log.report(Guest::kAddress, guest.bytes.size(), kPage);
    std::vector<uint64_t> pages;
    for (uint64_t page = 0; page < guest.bytes.size() / kPage; ++page) {
      if ((bitmap[page / 8] >> page % 8 & std::byte{1}) != std::byte{0}) pages.push_back(page);
    }
    return pages;
  }
  // That of a place that reads go to.
  uint64_t page_of(uint16_t slot) {
    return (guest.driver->data().address - Guest::kAddress + slot * kSlotBytes) / kPage;
  }

  Guest guest;
  DirtyLog log;
  DriverQueue& queue() { return guest.driver->queue(1); }

 private:
  Env& env_;
  Registry& registry_;
  std::array<bool, kSlots> busy_{};
};

bool contains(const std::vector<uint64_t>& pages, uint64_t page) {
  return std::ranges::find(pages, page) != pages.end();
}

class DirtyLogs : public ControllerTest {
 protected:
  DirtyLogs() { drive = "file:/guest,size=4M,block=4096"; }
};
INSTANTIATE_TEST_SUITE_P(Cores, DirtyLogs, ::testing::Values(1, 2));

SIM_TEST_P(DirtyLogs, CommandsInFlightAtTheStartAreTold) {
  BusyGuest busy(env, registry);
  co_await busy.start();
  busy.read(3, 1, 1, 0);
  busy.read(5, 2, 1, 400);
  EXPECT_TRUE(busy.guest.device->is_busy());
  busy.log.start();
  co_await busy.finish();
  const std::vector<uint64_t> pages = busy.report();
  EXPECT_TRUE(contains(pages, busy.page_of(3)));
  EXPECT_TRUE(contains(pages, busy.page_of(5)));
  EXPECT_TRUE(contains(pages, busy.page_of(5) + 1));
  const uint64_t ring = busy.queue().rings().completion.address - Guest::kAddress;
  EXPECT_TRUE(contains(pages, ring / kPage)) << "their completions";
  busy.log.stop();
  co_await busy.guest.close();
}

SIM_TEST_P(DirtyLogs, PagesAreForgottenUnderLoad) {
  BusyGuest busy(env, registry);
  co_await busy.start();
  busy.log.start();
  busy.read(1, 1, 1, 0);
  co_await busy.finish();
  busy.read(2, 1, 1, 0);
  std::vector<uint64_t> pages = busy.report();
  EXPECT_TRUE(contains(pages, busy.page_of(1)));
  EXPECT_TRUE(contains(pages, busy.page_of(2)));
  pages = busy.report();
  EXPECT_EQ(pages, std::vector<uint64_t>{busy.page_of(2)}) << "it is still written to";
  co_await busy.finish();
  pages = busy.report();
  EXPECT_TRUE(contains(pages, busy.page_of(2))) << "it was written to since";
  EXPECT_FALSE(contains(pages, busy.page_of(1)));
  EXPECT_EQ(busy.report(), std::vector<uint64_t>{});
  busy.log.stop();
  co_await busy.guest.close();
}

// What the device writes to: data, and the completions of the queue.
void expect_same(BusyGuest& busy, const std::vector<std::byte>& there) {
  const DriverMemory data = busy.guest.driver->data();
  for (const DriverMemory& part : {data, busy.queue().rings().completion}) {
    const auto at = there.begin() + static_cast<ptrdiff_t>(part.address - Guest::kAddress);
    EXPECT_TRUE(std::ranges::equal(part.bytes, std::span(at, part.bytes.size())));
  }
}

SIM_TEST_P(DirtyLogs, ACopyThatFollowsThemIsWhole) {
  Rng rng(7);
  BusyGuest busy(env, registry);
  co_await busy.start();
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 6; ++i) busy.read_something(rng);
    busy.log.start();
    std::vector<std::byte> there(busy.guest.bytes.begin(), busy.guest.bytes.end());
    for (int step = 0; step < 50; ++step) {
      busy.read_something(rng);
      co_await busy.pass(Duration{static_cast<int64_t>(rng.below(40'000))});
      busy.take();
      if (step % 5 != 0 && step != 49) continue;
      if (step == 49) co_await busy.guest.device->pause();
      for (const uint64_t page : busy.report()) {
        std::ranges::copy(busy.guest.bytes.subspan(page * kPage, kPage),
                          there.begin() + static_cast<ptrdiff_t>(page * kPage));
      }
    }
    expect_same(busy, there);
    busy.log.stop();
    busy.guest.device->resume();
    co_await busy.finish();
  }
  co_await busy.guest.close();
}

}  // namespace
}  // namespace cairn::door::vfio_user
