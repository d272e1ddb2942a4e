// SPDX-License-Identifier: Apache-2.0
// Reservations on the wire: who is preempted loses its commands before the preemptor is answered.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/replicate_format.h"
#include "nvme/format/reservation_format.h"
#include "task/deadline.h"
#include "testing/target/suite.h"

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
Task<void> acquire(RawHost& host, uint64_t key) {
  Sqe sqe = reservation(host, IoOpcode::kReservationAcquire);
  nvme::AcquireFields{.type = nvme::ReservationType::kWriteExclusive}.encode(sqe);
  const nvme::Cqe cqe = co_await host.ask(sqe, bytes_of({.current = key}));
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
}
Sqe preempt_and_abort(RawHost& host) {
  Sqe sqe = reservation(host, IoOpcode::kReservationAcquire);
  nvme::AcquireFields{.action = nvme::AcquireAction::kPreemptAndAbort,
                      .type = nvme::ReservationType::kWriteExclusive}
      .encode(sqe);
  return sqe;
}

// A host with an admin and an I/O queue.
struct Host {
  explicit Host(env::Env& env) : admin(env), queue(env) {}
  Task<void> arrive(env::Address box, uint8_t number, uint16_t size = 31) {
    co_await admin.arrive(box, {}, {.host_number = number});
    co_await queue.dial(box);
    co_await queue.greet();
    const nvme::Cqe cqe = co_await queue.connect(
        {.id = 1, .size = size, .controller = admin.controller_id, .host_number = number});
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
  co_await acquire(first.queue, 11);

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

  const nvme::Cqe cqe = co_await second.queue.ask(preempt_and_abort(second.queue),
                                                  bytes_of({.current = 22, .next = 11}));
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  for (int i = 0; i < 2; ++i) {
    const nvme::Cqe aborted = co_await first.queue.answer();
    EXPECT_TRUE(aborted.cid == write.cid || aborted.cid == compare.cid);
    EXPECT_EQ(aborted.get_status().code(), StatusCode::kAbortedPreempt);
    EXPECT_TRUE(aborted.get_status().do_not_retry()) << "or it would land behind the fence";
  }
  Sqe late = first.queue.io(IoOpcode::kWrite, 0, 1);
  late.sgl1 = SglDescriptor::in_capsule(kBlock);
  const nvme::Cqe refused = co_await first.queue.ask(late, pattern(kBlock, 1));
  EXPECT_EQ(refused.get_status().code(), StatusCode::kReservationConflict);
  first.leave();
  second.leave();
  co_await box.close();
}

// What Identify says of a namespace's incarnation, as a Replicated Write names it.
Task<uint32_t> incarnation_of(RawHost& admin, uint32_t nsid) {
  Sqe identify = Sqe::make(nvme::AdminOpcode::kIdentify, nsid);
  identify.cid = admin.next_cid();
  identify.sgl1 = SglDescriptor::transport(sizeof(nvme::IdentifyNamespace));
  co_await admin.deliver(admin.capsule(identify));
  const std::optional<Received> data = co_await admin.receive();
  EXPECT_EQ(name_of(data), "C2HData");
  const auto page = load<nvme::IdentifyNamespace>(data->data());
  EXPECT_EQ(page.incarnation_magic, nvme::kIncarnationMagic);
  if ((data->common.flags & nvme::PduFlags::kSuccess) == 0) {
    const nvme::Cqe cqe = co_await admin.answer();
    EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  }
  co_return nvme::incarnation_check(page.incarnation_medium, page.incarnation_opening);
}

// The one that is fenced off is not the one that the command names first, and is slow.
WORLD_TEST(Reservation, PreemptAndAbortEndsWhatWritesThereBesidesAnotherNamespace) {
  Box box(env, {.drives = {"stack:limit(mem:size=4M, iops=1)", "mem:size=4M"}});
  co_await box.open(scene.any_port());
  Host first(env);
  co_await first.arrive(box.address, 1);
  Host second(env);
  co_await second.arrive(box.address, 2);
  co_await register_host(first.queue, 11);
  co_await register_host(second.queue, 22);
  co_await acquire(first.queue, 11);
  nvme::ReplicateFields fields;
  fields.blocks = {.start = Lba(0), .blocks = 1};
  fields.unit_shift = nvme::kUnitShiftMax;
  fields.replicas[0].nsid = 1;
  fields.replicas[0].check = co_await incarnation_of(first.admin, 1);
  for (int i = 0; i < 4; ++i) {
    Sqe write = Sqe::make(IoOpcode::kReplicatedWrite, 2);
    fields.encode(write);
    write.sgl1 = SglDescriptor::in_capsule(kBlock);
    write.cid = first.queue.next_cid();
    co_await first.queue.deliver(first.queue.capsule(write, pattern(kBlock, 1)));
  }
  co_await until_in_flight(box, 2);
  const Time begin = env.now();
  const nvme::Cqe cqe = co_await second.queue.ask(preempt_and_abort(second.queue),
                                                  bytes_of({.current = 22, .next = 11}));
  EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  int aborted = 0;
  for (int i = 0; i < 4; ++i) {
    const nvme::Cqe ended = co_await first.queue.answer();
    aborted += ended.get_status().code() == StatusCode::kAbortedPreempt ? 1 : 0;
  }
  EXPECT_GE(aborted, 2);
  EXPECT_LT(env.now() - begin, 500_ms) << "they wait for a second each";
  first.leave();
  second.leave();
  co_await box.close();
}

// One core, so that one host can take all of its buffers for data in capsules.
template <class World>
class Fencing : public Conformance<World> {
  conformance::Setting setting() const override { return {.cores = 1}; }
};
TYPED_TEST_SUITE(Fencing, Simulator, WorldNames);

// A victim whose write waits for a buffer that is not coming, since a third host's writes to a slow
// namespace have them all, and somebody about to fence it off.
struct Fence {
  explicit Fence(env::Env& its)
      : env(its),
        box(its, {.drives = {"stack:limit(mem:size=4M, iops=1000000)",
                             "stack:limit(mem:size=4M, iops=1)"},
                  .queue_entries_max = 512}),
        greedy(its),
        victim(its),
        fencer(its) {}
  Task<void> open(Scene& scene) {
    co_await box.open(scene.any_port());
    co_await greedy.arrive(box.address, 3, 511);
    co_await victim.arrive(box.address, 1);
    co_await fencer.arrive(box.address, 2);
    co_await register_host(victim.queue, 11);
    co_await register_host(fencer.queue, 22);
    co_await acquire(victim.queue, 11);
    for (uint32_t i = 0; i < fabric::kInCapsuleBuffersLarge + 8; ++i) {
      co_await send_write(greedy.queue, 2);
    }
    co_await pause(10_ms);
    write = co_await send_write(victim.queue, 1);
    co_await pause(10_ms);
  }
  Task<Sqe> send_write(RawHost& host, uint32_t nsid) {
    Sqe sqe = host.io(IoOpcode::kWrite, 0, 2, nsid);
    sqe.sgl1 = SglDescriptor::in_capsule(2 * kBlock);
    co_await host.deliver(host.capsule(sqe, pattern(2 * kBlock, 1)));
    co_return sqe;
  }
  Task<void> pause(Duration time) {
    const Result<void> slept = co_await task::sleep_for(env, time);
    EXPECT_TRUE(slept.has_value());
  }
  // To its last byte, but for the answer. The keys come by R2T, from buffers that are free.
  Task<void> send_preempt() {
    const std::vector<std::byte> keys = bytes_of({.current = 22, .next = 11});
    Sqe sqe = preempt_and_abort(fencer.queue);
    sqe.sgl1 = SglDescriptor::transport(static_cast<uint32_t>(keys.size()));
    co_await fencer.queue.deliver(fencer.queue.capsule(sqe));
    const nvme::R2t asked = co_await fencer.queue.send_asked(keys);
    EXPECT_EQ(asked.length, keys.size());
  }
  Task<void> close() {
    greedy.leave();
    victim.leave();
    fencer.leave();
    co_await box.close();
  }
  env::Env& env;
  Box box;
  Host greedy;
  Host victim;
  Host fencer;
  Sqe write;
};

WORLD_TEST(Fencing, EndsAWriteThatWaitsForABuffer) {
  Fence fence(env);
  co_await fence.open(scene);
  const Time begin = env.now();
  co_await fence.send_preempt();
  const nvme::Cqe fenced = co_await fence.fencer.queue.answer();
  EXPECT_TRUE(fenced.get_status().ok()) << text_of(fenced);
  const nvme::Cqe aborted = co_await fence.victim.queue.answer();
  EXPECT_EQ(aborted.cid, fence.write.cid);
  EXPECT_EQ(aborted.get_status().code(), StatusCode::kAbortedPreempt);
  EXPECT_LT(env.now() - begin, 100_ms);
  co_await fence.close();
}

// Whatever the victim was in the middle of when it went away.
WORLD_TEST(Fencing, DoesNotWaitForAVictimThatLeaves) {
  for (int i = 0; i < 60; ++i) {
    Fence fence(env);
    co_await fence.open(scene);
    if (i % 2 == 0) fence.victim.leave();
    co_await fence.pause(i * 1_us);
    co_await fence.send_preempt();
    co_await fence.pause(i * 1_us);
    fence.victim.leave();
    const nvme::Cqe fenced = co_await fence.fencer.queue.answer();
    EXPECT_TRUE(fenced.get_status().ok()) << text_of(fenced);
    co_await fence.close();
  }
}

WORLD_TEST(Fencing, DoesNotKeepABoxFromClosing) {
  for (int i = 0; i < 60; ++i) {
    Fence fence(env);
    co_await fence.open(scene);
    co_await fence.send_preempt();
    co_await fence.pause(i * 1_us);
    const Time begin = env.now();
    co_await fence.box.close();
    EXPECT_LT(env.now() - begin, 1_s);
  }
}

}  // namespace
}  // namespace cairn::target_tests
