// SPDX-License-Identifier: Apache-2.0
// Reservations on the wire: who is preempted loses its commands before the preemptor is answered.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nvme/reservation_format.h"
#include "target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(Reservation);

using nvme::SglDescriptor;

struct Keys {
  uint64_t current = 0;
  uint64_t next = 0;  // or the one to preempt
};

Sqe reservation(RawHost& host, IoOpcode opcode) {
  Sqe sqe = Sqe::make(opcode, 1);
  sqe.sgl1 = SglDescriptor::in_capsule(sizeof(nvme::RegisterData));
  sqe.cid = host.next_cid();
  return sqe;
}
std::vector<std::byte> bytes_of(Keys keys) {
  std::vector<std::byte> bytes(sizeof(nvme::RegisterData));
  store(bytes, nvme::RegisterData{.current_key = keys.current, .new_key = keys.next});
  return bytes;
}
Task<void> register_host(RawHost& host, uint64_t key) {
  Sqe sqe = reservation(host, IoOpcode::kReservationRegister);
  nvme::RegisterFields{}.encode(sqe);
  const nvme::Cqe cqe = co_await host.ask(sqe, bytes_of({.next = key}));
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
}

// A host with an admin and an I/O queue.
struct Host {
  explicit Host(env::Env& env) : admin(env), queue(env) {}
  Task<void> arrive(env::Address box, uint8_t number) {
    co_await admin.arrive(box, {}, {.host_number = number});
    co_await queue.dial(box);
    co_await queue.greet();
    const nvme::Cqe cqe =
        co_await queue.connect({.id = 1, .controller = admin.controller_id, .host_number = number});
    EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  }
  void leave() {
    admin.stream.reset();
    queue.stream.reset();
  }
  RawHost admin;
  RawHost queue;
};

// Until the box has received so many commands that it has not answered.
Task<void> until_in_flight(Box& box, size_t commands) {
  for (size_t count = 0; count < commands;) {
    const fabric::TargetReport report = co_await box.target().report(16);
    count = 0;
    for (const fabric::TargetLane& lane : report.lanes) count += lane.in_flight;
  }
}

WORLD_TEST(Reservation, PreemptAndAbortEndsTheCommandsOfThePreempted) {
  Box box(env);
  co_await box.open(scene.any_port());
  Host first(env);
  co_await first.arrive(box.address, 1);
  Host second(env);
  co_await second.arrive(box.address, 2);
  co_await register_host(first.queue, 11);
  co_await register_host(second.queue, 22);
  Sqe acquire = reservation(first.queue, IoOpcode::kReservationAcquire);
  nvme::AcquireFields{.type = nvme::ReservationType::kWriteExclusive}.encode(acquire);
  const nvme::Cqe held = co_await first.queue.ask(acquire, bytes_of({.current = 11}));
  EXPECT_TRUE(held.get_status().ok()) << text_of(held);

  // One that waits for its data, and the first of a pair that waits for its second.
  Sqe write = first.queue.io(IoOpcode::kWrite, 0, 1);
  write.sgl1 = SglDescriptor::transport(kBlock);
  co_await first.queue.deliver(first.queue.capsule(write));
  const std::optional<Received> asked = co_await first.queue.receive();
  EXPECT_EQ(name_of(asked), "R2T");
  Sqe compare = first.queue.io(IoOpcode::kCompare, 0, 1);
  compare.sgl1 = SglDescriptor::in_capsule(kBlock);
  compare.set_fuse(nvme::Fuse::kFirst);
  co_await first.queue.deliver(first.queue.capsule(compare, pattern(kBlock, 1)));
  co_await until_in_flight(box, 2);

  Sqe preempt = reservation(second.queue, IoOpcode::kReservationAcquire);
  nvme::AcquireFields{.action = nvme::AcquireAction::kPreemptAndAbort,
                      .type = nvme::ReservationType::kWriteExclusive}
      .encode(preempt);
  const nvme::Cqe cqe = co_await second.queue.ask(preempt, bytes_of({.current = 22, .next = 11}));
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  for (int i = 0; i < 2; ++i) {
    const nvme::Cqe aborted = co_await first.queue.answer();
    EXPECT_TRUE(aborted.cid == write.cid || aborted.cid == compare.cid);
    EXPECT_EQ(aborted.get_status().code(), StatusCode::kAbortRequested);
  }
  Sqe late = first.queue.io(IoOpcode::kWrite, 0, 1);
  late.sgl1 = SglDescriptor::in_capsule(kBlock);
  const nvme::Cqe refused = co_await first.queue.ask(late, pattern(kBlock, 1));
  EXPECT_EQ(refused.get_status().code(), StatusCode::kReservationConflict);
  first.leave();
  second.leave();
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
