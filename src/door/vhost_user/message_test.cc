// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/message.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace cairn::door::vhost_user {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

Result<Message> decode_whole(const std::vector<std::byte>& whole, size_t descriptors) {
  const auto header = load<MessageHeader>(whole);
  if (const Result<void> checked = check(header); !checked) return fail(checked.error());
  return decode(header, Bytes(whole).subspan(sizeof(header)), descriptors);
}

TEST(VhostMessage, VringAddressAsFrontEndsWriteIt) {
  const auto message = decode_whole(
      bytes({9, 0,    0, 0, 9, 0,    0, 0, 40, 0,    0, 0,                 // version, need reply
             1, 0,    0, 0, 1, 0,    0, 0,                                 // vring 1, logged
             0, 0x10, 0, 0, 0, 0x7f, 0, 0, 0,  0x30, 0, 0, 0, 0x7f, 0, 0,  // descriptors, used
             0, 0x20, 0, 0, 0, 0x7f, 0, 0, 0,  0x40, 0, 0, 0, 0,    0, 0}),
      0);  // available, log
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->request, Request::kSetVringAddr);
  EXPECT_TRUE(message->wants_reply);
  const auto& address = std::get<VringAddress>(message->payload);
  EXPECT_EQ(address.index, 1u);
  EXPECT_EQ(address.flags, kVringLog);
  EXPECT_EQ(address.descriptors, 0x7f00'0000'1000u);
  EXPECT_EQ(address.used, 0x7f00'0000'3000u);
  EXPECT_EQ(address.available, 0x7f00'0000'2000u);
  EXPECT_EQ(address.log, 0x4000u);
}

TEST(VhostMessage, MemoryTableHasADescriptorForEachRegion) {
  std::vector<std::byte> whole(12 + 8 + 2 * 32);
  store(whole, MessageHeader{.request = 5, .flags = 1, .size = 72});
  store(MutableBytes(whole).subspan(12), uint32_t{2});
  store(MutableBytes(whole).subspan(20),
        MemoryRegion{.guest_address = 0, .size = 4096, .user_address = 77, .mmap_offset = 8192});
  const auto message = decode_whole(whole, 2);
  ASSERT_TRUE(message.has_value());
  const auto& table = std::get<MemoryTable>(message->payload);
  EXPECT_EQ(table.count, 2u);
  EXPECT_EQ(table.regions[0].mmap_offset, 8192u);
  EXPECT_FALSE(decode_whole(whole, 1).has_value());
  store(MutableBytes(whole).subspan(12), uint32_t{3});
  EXPECT_FALSE(decode_whole(whole, 3).has_value()) << "the third is not there";
  store(MutableBytes(whole).subspan(12), uint32_t{9});
  EXPECT_FALSE(decode_whole(whole, 9).has_value());
}

TEST(VhostMessage, SignalsComeWithADescriptorOrSayThatNoneDoes) {
  const auto with = bytes({12, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(std::get<VringSignal>(decode_whole(with, 1)->payload).has_signal);
  EXPECT_FALSE(decode_whole(with, 0).has_value());
  const auto without = bytes({12, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0});
  const auto message = decode_whole(without, 0);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<VringSignal>(message->payload).index, 3u);
  EXPECT_FALSE(std::get<VringSignal>(message->payload).has_signal);
}

TEST(VhostMessage, InflightAreaComesWithItsPaddingOrWithout) {
  std::vector<std::byte> whole(12 + 24);
  store(whole, MessageHeader{.request = 31, .flags = 1, .size = 24});
  store(
      MutableBytes(whole).subspan(12),
      InflightArea{.mmap_size = 0, .mmap_offset = 0, .queues = 2, .queue_size = 128, .padding = 0});
  EXPECT_EQ(std::get<InflightArea>(decode_whole(whole, 0)->payload).queue_size, 128u);
  whole.resize(12 + 20);
  EXPECT_EQ(std::get<InflightArea>(decode_whole(whole, 0)->payload).queues, 2u);
}

TEST(VhostMessage, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const std::vector<std::byte>& whole) {
    const auto message = decode_whole(whole, 0);
    return message ? "" : std::string(name(message.error().code()));
  };
  EXPECT_EQ(refused(bytes({1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0})), "invalid") << "version 2";
  EXPECT_EQ(refused(bytes({1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0})), "invalid") << "a reply";
  EXPECT_EQ(refused(bytes({1, 0, 0, 0, 1, 0, 0, 0, 0, 4, 0, 0})), "invalid") << "too long";
  EXPECT_EQ(refused(bytes({2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0})), "invalid");
  EXPECT_EQ(refused(bytes({22, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})), "unsupported");
  EXPECT_EQ(
      refused(bytes({24, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})),
      "invalid")
      << "a configuration that is not there";
}

TEST(VhostMessage, RepliesSaySo) {
  EXPECT_EQ(encode_reply(Request::kGetQueueNum, uint64_t{16}),
            bytes({17, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace cairn::door::vhost_user
