// SPDX-License-Identifier: Apache-2.0
// What clients and server agree on, and what becomes of clients that say something else.
#include <gtest/gtest.h>

#include <string>

#include "door/door.h"
#include "door/nbd/keys.h"
#include "door/nbd/option_request.h"

namespace cairn::door_tests {
namespace {

using door::nbd::Option;
using door::nbd::OptionReply;

WORLD_TEST_SUITE(NbdNegotiation);

// The server has ended the connection.
Task<bool> is_over(NbdClient& client) {
  const Result<Content> more = co_await client.receive(1);
  co_return !more.has_value();
}

WORLD_TEST(NbdNegotiation, GoTellsSizeFlagsAndBlockSizes) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  const Told told = co_await sure(client.arrive(door.address, "small", true));
  EXPECT_EQ(told.size, 1u << 20);
  EXPECT_EQ(told.flags, 0b1101'1110'1101);
  EXPECT_EQ(told.minimum, 1u);
  EXPECT_EQ(told.preferred, 4096u);
  EXPECT_EQ(told.maximum, 32u << 20);
  client.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdNegotiation, ExportNameIsAnsweredWithZeroesUnlessBothLeaveThemOut) {
  Door door(env);
  co_await door.open(scene.any_port());
  for (const uint32_t flags : {1u, 3u}) {
    NbdClient client(env);
    co_await sure(client.dial(door.address));
    co_await sure(client.greet(flags));
    co_await sure(client.ask_option(Option::kExportName, Content{std::byte{'a'}}));
    const Content reply = co_await sure(client.receive(flags == 1 ? 134 : 10));
    EXPECT_EQ(uint64_t{load<door::nbd::Be64>(reply)}, kSize);
    const Answer answer = co_await sure(client.call({.command = Command::kRead, .length = 16}));
    EXPECT_EQ(answer.error, 0u);
    client.hang_up();
  }
  co_await door.close();
}

WORLD_TEST(NbdNegotiation, TheEmptyNameIsTheFirstExport) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  const Told told = co_await sure(client.arrive(door.address, "", false));
  EXPECT_EQ(told.size, kSize);
  client.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdNegotiation, ListNamesEveryExport) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.dial(door.address));
  co_await sure(client.greet());
  co_await sure(client.ask_option(Option::kList));
  std::vector<std::string> names;
  for (;;) {
    const OptionAnswer answer = co_await sure(client.option_answer(Option::kList));
    if (answer.type != OptionReply::kServer) break;
    const uint32_t length = load<door::nbd::Be32>(answer.data);
    names.emplace_back(as_text(Bytes(answer.data).subspan(4, length)));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "small", "fixed"}));
  client.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdNegotiation, WhatIsRefusedLeavesTheRestPossible) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.dial(door.address));
  co_await sure(client.greet());
  struct Case {
    Option option;
    Content payload;
    OptionReply reply;
  };
  const Content junk(3, std::byte{0x55});
  const Case cases[] = {
      {Option::kStartTls, {}, OptionReply::kUnsupported},
      {Option::kExtendedHeaders, {}, OptionReply::kUnsupported},
      {static_cast<Option>(77), junk, OptionReply::kUnsupported},
      {Option::kList, junk, OptionReply::kInvalid},
      {Option::kGo, junk, OptionReply::kInvalid},
      {Option::kGo, info_payload("none"), OptionReply::kUnknown},
      {Option::kInfo, info_payload(std::string(5000, 'x')), OptionReply::kInvalid},
      {Option::kSetMetaContext, context_payload("a", {"base:allocation"}), OptionReply::kInvalid},
      {Option::kGo, Content(20000), OptionReply::kTooBig},
      {Option::kStructuredReply, junk, OptionReply::kInvalid},
      {Option::kStructuredReply, {}, OptionReply::kAck},
      {Option::kSetMetaContext, context_payload("none", {}), OptionReply::kUnknown},
      {Option::kSetMetaContext, context_payload("a", {"other:thing"}), OptionReply::kAck},
      {Option::kSetMetaContext, context_payload("a", std::vector<std::string>(65, "x:y")),
       OptionReply::kTooBig},
      {Option::kListMetaContext, context_payload("a", {}), OptionReply::kMetaContext},
  };
  for (const Case& each : cases) {
    const OptionAnswer answer = co_await sure(client.option(each.option, each.payload));
    EXPECT_EQ(static_cast<uint32_t>(answer.type), static_cast<uint32_t>(each.reply))
        << static_cast<uint32_t>(each.option);
  }
  const OptionAnswer end = co_await sure(client.option_answer(Option::kListMetaContext));
  EXPECT_EQ(end.type, OptionReply::kAck);
  const Told told = co_await sure(client.go("a"));
  EXPECT_EQ(told.size, kSize);
  client.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdNegotiation, WhoBreaksTheProtocolIsLeft) {
  Door door(env);
  co_await door.open(scene.any_port());
  for (const int way : {0, 1, 2, 3, 4, 5}) {
    NbdClient client(env);
    co_await sure(client.dial(door.address));
    co_await sure(client.greet(way == 0 ? 0x80 : way == 1 ? 0 : 3));
    if (way == 1) co_await sure(client.ask_option(Option::kList));
    if (way == 2) co_await sure(client.send(Content(16, std::byte{7})));
    const door::nbd::OptionHeader huge{.option = 7, .length = 0x7fff'ffff};
    if (way == 3) co_await sure(client.send(door::nbd::bytes_of(huge)));
    if (way == 4) co_await sure(client.ask_option(Option::kExportName, Content(4, std::byte{'n'})));
    if (way == 5) {
      const OptionAnswer bye = co_await sure(client.option(Option::kAbort));
      EXPECT_EQ(bye.type, OptionReply::kAck);
    }
    const bool over = co_await is_over(client);
    EXPECT_TRUE(over) << way;
  }
  NbdClient next(env);
  co_await sure(next.arrive(door.address, "a", true));
  next.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdNegotiation, WhoMustComeThroughTlsIsHeardOnlyThere) {
  const door::nbd::NbdKeys keys = must(door::nbd::NbdKeys::parse("alice:" + std::string(64, '5')));
  Door door(env, {.keys = &keys});
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.dial(door.address));
  co_await sure(client.greet());
  for (const Option option : {Option::kList, Option::kStructuredReply, Option::kGo}) {
    const OptionAnswer answer = co_await sure(client.option(option));
    EXPECT_EQ(answer.type, OptionReply::kTlsRequired);
  }
  // What comes in the clear behind STARTTLS was perhaps put there by somebody else.
  Content both;
  for (const Option option : {Option::kStartTls, Option::kList}) {
    const door::nbd::OptionHeader header{.option = static_cast<uint32_t>(option)};
    const Bytes bytes = door::nbd::bytes_of(header);
    both.insert(both.end(), bytes.begin(), bytes.end());
  }
  co_await sure(client.send(both));
  const OptionAnswer ack = co_await sure(client.option_answer(Option::kStartTls));
  EXPECT_EQ(ack.type, OptionReply::kAck);
  Content rest;
  Result<Content> more = co_await client.receive(1);
  while (more) {
    rest.insert(rest.end(), more->begin(), more->end());
    more = co_await client.receive(1);
  }
  // At most an alert of TLS: no answer to the list.
  EXPECT_LT(rest.size(), sizeof(door::nbd::OptionReplyHeader));
  co_await door.close();
}

TEST(NbdOptionRequest, BytesOfTheProtocolsDocument) {
  const Content payload = info_payload("ab");
  const uint8_t golden[] = {0, 0, 0, 2, 'a', 'b', 0, 1, 0, 3};
  EXPECT_EQ(payload, Content(reinterpret_cast<const std::byte*>(golden),
                             reinterpret_cast<const std::byte*>(golden) + sizeof(golden)));
  for (size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(door::nbd::parse_info_request(Bytes(payload).first(size)).has_value()) << size;
  }
  EXPECT_EQ(door::nbd::parse_info_request(payload)->name, "ab");
}

}  // namespace
}  // namespace cairn::door_tests
