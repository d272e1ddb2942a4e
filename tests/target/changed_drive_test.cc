// SPDX-License-Identifier: Apache-2.0
// A drive that lost writes behind the target: hosts that go by incarnations and were told of the
// former one hear nothing of it any more, until they have asked again; all others are told by a
// flush.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "nvme/format/feature_format.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(ChangedDrive);

BoxOptions forgetful_box() { return {.drives = {"forgetful:mem:size=4M", "mem:size=4M"}}; }

Sqe flush_of(RawHost& host, uint32_t nsid) {
  Sqe sqe = Sqe::make(IoOpcode::kFlush, nsid);
  sqe.cid = host.next_cid();
  return sqe;
}

// A host of its own, which may say that it goes by incarnations.
enum class Goes { kByIncarnations, kByFlushes };
struct Guest {
  explicit Guest(env::Env& env) : admin(env), queue(env) {}
  Task<void> come(const Box& box, Goes how) {
    co_await admin.arrive(box.address);
    if (how == Goes::kByIncarnations) {
      const nvme::Cqe said = co_await admin.ask(saying_so());
      EXPECT_TRUE(said.get_status().ok()) << text_of(said);
    }
    co_await queue.join(box.address, admin, 1);
  }
  Sqe saying_so() {
    Sqe sqe = Sqe::make(nvme::AdminOpcode::kSetFeatures);
    sqe.cid = admin.next_cid();
    nvme::SetFeaturesFields{.feature = nvme::Feature::kIncarnations, .value = 1}.encode(sqe);
    return sqe;
  }
  Task<nvme::Cqe> flush() {
    const nvme::Cqe flushed = co_await queue.ask(flush_of(queue, 1));
    co_return flushed;
  }
  void leave() {
    admin.stream.reset();
    queue.stream.reset();
  }
  RawHost admin;
  RawHost queue;
};

// What an answer to any command on it would be is not sent: the connection ends.
Task<void> expect_no_answer(RawHost& host, Sqe sqe) {
  co_await host.deliver(host.capsule(sqe));
  const std::optional<Received> pdu = co_await host.receive();
  EXPECT_EQ(name_of(pdu), "end");
}

WORLD_TEST(ChangedDrive, IsSilentToHostsThatWereToldOfTheFormer) {
  Box box(env, forgetful_box());
  co_await box.open(scene.any_port());
  Guest guest(env);
  co_await guest.come(box, Goes::kByIncarnations);
  RawHost second(env);
  co_await second.join(box.address, guest.admin, 2);
  RawHost third(env);
  co_await third.join(box.address, guest.admin, 3);
  std::vector<std::byte> data = co_await guest.queue.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);

  box.drive(0).lose();
  Sqe read = guest.queue.io(IoOpcode::kRead, 0, 1);
  read.sgl1 = nvme::SglDescriptor::transport(kBlock);
  co_await expect_no_answer(guest.queue, read);
  // Nobody noticed on those until now; another drive is none of it.
  data = co_await second.read(2, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  co_await expect_no_answer(second, flush_of(second, 1));
  co_await expect_no_answer(third, flush_of(third, nvme::kBroadcastNsid));

  // Whoever comes now is told what is there; what was lost before is not its loss.
  Guest next(env);
  co_await next.come(box, Goes::kByIncarnations);
  data = co_await next.queue.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  const nvme::Cqe flushed = co_await next.flush();
  EXPECT_TRUE(flushed.get_status().ok()) << text_of(flushed);
  for (RawHost* host : {&second, &third}) host->stream.reset();
  guest.leave();
  next.leave();
  co_await box.close();
}

// As by any disk: a flush that fails and is not to be sent again, on a connection that stays.
WORLD_TEST(ChangedDrive, IsToldByAFlushToHostsThatKnowNothingOfIncarnations) {
  Box box(env, forgetful_box());
  co_await box.open(scene.any_port());
  Guest stranger(env);
  co_await stranger.come(box, Goes::kByFlushes);
  box.drive(0).lose();
  // One that goes by incarnations takes no news from others.
  Guest knowing(env);
  co_await knowing.come(box, Goes::kByIncarnations);
  co_await expect_no_answer(knowing.queue, flush_of(knowing.queue, 1));
  knowing.leave();

  const nvme::Cqe told = co_await stranger.flush();
  EXPECT_EQ(told.get_status().code(), StatusCode::kWriteFault) << text_of(told);
  EXPECT_TRUE(told.get_status().do_not_retry()) << text_of(told);
  std::vector<std::byte> data = co_await stranger.queue.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  const nvme::Cqe again = co_await stranger.flush();
  EXPECT_TRUE(again.get_status().ok()) << text_of(again);

  // The same when a read was answered first.
  box.drive(0).lose();
  data = co_await stranger.queue.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  const nvme::Cqe later = co_await stranger.flush();
  EXPECT_EQ(later.get_status().code(), StatusCode::kWriteFault) << text_of(later);
  const nvme::Cqe after = co_await stranger.flush();
  EXPECT_TRUE(after.get_status().ok()) << text_of(after);
  stranger.leave();
  co_await box.close();
}

// Queues that there are would not know.
WORLD_TEST(ChangedDrive, WhoGoesByIncarnationsSaysSoBeforeItHasQueues) {
  BoxAndHost pair(env, forgetful_box());
  co_await pair.open(scene);
  Sqe sqe = Sqe::make(nvme::AdminOpcode::kSetFeatures);
  sqe.cid = pair.admin.next_cid();
  nvme::SetFeaturesFields{.feature = nvme::Feature::kIncarnations, .value = 1}.encode(sqe);
  const nvme::Cqe late = co_await pair.admin.ask(sqe);
  EXPECT_EQ(late.get_status().code(), StatusCode::kCommandSequenceError) << text_of(late);
  co_await pair.close();
}

// What a flush tells is for those who ask for one.
WORLD_TEST(ChangedDrive, ALossIsToldToNobodyWhoOnlyDeallocates) {
  BoxAndHost pair(env, forgetful_box());
  co_await pair.open(scene);
  pair.box.drive(0).fail_a_flush();
  Sqe zeroes = Sqe::make(IoOpcode::kWriteZeroes, 1);
  zeroes.cid = pair.queue.next_cid();
  nvme::BlockFields{.start = Lba(0), .blocks = 8, .force_unit_access = true, .deallocate = true}
      .encode(zeroes);
  const nvme::Cqe done = co_await pair.queue.ask(zeroes);
  EXPECT_TRUE(done.get_status().ok()) << text_of(done);
  const nvme::Cqe told = co_await pair.queue.ask(flush_of(pair.queue, 1));
  EXPECT_FALSE(told.get_status().ok());
  const nvme::Cqe again = co_await pair.queue.ask(flush_of(pair.queue, 1));
  EXPECT_TRUE(again.get_status().ok()) << text_of(again);
  co_await pair.close();
}

}  // namespace
}  // namespace cairn::target_tests
