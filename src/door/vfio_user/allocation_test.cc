// SPDX-License-Identifier: Apache-2.0
// A steady state takes nothing from the heap, command after command.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "door/vfio_user/controller_testing.h"

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

namespace {
uint64_t allocation_count = 0;
}

void* operator new(size_t size) {
  ++allocation_count;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cairn::door::vfio_user {
namespace {

class GuestAllocation : public ControllerTest {};
INSTANTIATE_TEST_SUITE_P(Cores, GuestAllocation, ::testing::Values(1));

// Reads and writes of one page, two and a list, so many at once; gives how many allocations it
// took.
uint64_t run_round(Guest& guest, uint16_t count) {
  const uint64_t before = allocation_count;
  DriverQueue& queue = guest.driver->queue(1);
  for (uint16_t i = 0; i < count; ++i) {
    nvme::Sqe sqe =
        guest.io(i % 2 == 0 ? nvme::IoOpcode::kRead : nvme::IoOpcode::kWrite, i, 1 + i % 3, 4096);
    sqe.cid = i;
    queue.submit(sqe);
  }
  queue.ring();
  size_t done = 0;
  while (done < count) {
    guest.device->poll();
    done += queue.poll([](const nvme::Cqe& cqe) { EXPECT_TRUE(cqe.get_status().ok()); });
  }
  return allocation_count - before;
}

task::Task<void> counts(env::Env& env, nvme::Registry& registry) {
  Guest guest(env, {.block = 4096});
  co_await guest.start(registry);
  for (int warm = 0; warm < 3; ++warm) run_round(guest, 60);
  uint64_t allocations = 0;
  for (int round = 0; round < 100; ++round) allocations += run_round(guest, 60);
  EXPECT_EQ(allocations, 0u);
  co_await guest.close();
}
TEST_P(GuestAllocation, CommandsTakeNothingFromTheHeap) {
  drive = "mem:size=4M,block=4096";
  run(counts);
}

}  // namespace
}  // namespace cairn::door::vfio_user

#endif
