// SPDX-License-Identifier: Apache-2.0
// A drive that lost writes behind the target: hosts that were told of the former one hear nothing
// of it any more, until they have asked again.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(ChangedDrive);

BoxOptions forgetful_box() { return {.drives = {"forgetful:mem:size=4M", "mem:size=4M"}}; }

Sqe flush_of(RawHost& host, uint32_t nsid) {
  Sqe sqe = Sqe::make(IoOpcode::kFlush, nsid);
  sqe.cid = host.next_cid();
  return sqe;
}

// What an answer to any command on it would be is not sent: the connection ends.
Task<void> expect_no_answer(RawHost& host, Sqe sqe) {
  co_await host.deliver(host.capsule(sqe));
  const std::optional<Received> pdu = co_await host.receive();
  EXPECT_EQ(name_of(pdu), "end");
}

WORLD_TEST(ChangedDrive, IsSilentToHostsThatWereToldOfTheFormer) {
  BoxAndHost pair(env, forgetful_box());
  co_await pair.open(scene);
  RawHost second(env);
  co_await second.join(pair.box.address, pair.admin, 2);
  RawHost third(env);
  co_await third.join(pair.box.address, pair.admin, 3);
  std::vector<std::byte> data = co_await pair.queue.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);

  pair.box.drive(0).lose();
  Sqe read = pair.queue.io(IoOpcode::kRead, 0, 1);
  read.sgl1 = nvme::SglDescriptor::transport(kBlock);
  co_await expect_no_answer(pair.queue, read);
  // Nobody noticed on those until now; another drive is none of it.
  data = co_await second.read(2, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  co_await expect_no_answer(second, flush_of(second, 1));
  co_await expect_no_answer(third, flush_of(third, nvme::kBroadcastNsid));

  // Whoever comes now is told what is there.
  RawHost admin(env);
  co_await admin.arrive(pair.box.address);
  RawHost queue(env);
  co_await queue.join(pair.box.address, admin, 1);
  data = co_await queue.read(1, 0, 1);
  EXPECT_EQ(data.size(), kBlock);
  const nvme::Cqe flushed = co_await queue.ask(flush_of(queue, 1));
  EXPECT_TRUE(flushed.get_status().ok());
  for (RawHost* host : {&admin, &queue, &second, &third}) host->stream.reset();
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
