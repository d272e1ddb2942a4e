// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/command.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "kv/chain/message_format.h"

namespace cairn::kv::chain {
namespace {

using Kind = Decision::Kind;

// A key that commands come to.
struct Key {
  std::optional<Record> record;
  uint64_t version = 0;
  int64_t now_ms = 1000;

  Decision apply(Command command, RequestId id, uint64_t since = 0) {
    Decision decision = decide(record, command, id, since, ++version, now_ms);
    if (decision.kind == Kind::kChanged) record = decision.record;
    return decision;
  }
};

Command put(std::string value) { return {.kind = Command::Kind::kPut, .value = std::move(value)}; }
Command add(int64_t amount) { return {.kind = Command::Kind::kAdd, .amount = amount}; }

TEST(Command, ConditionsAreJudgedByTheNewestRecord) {
  Key key;
  Command put_new{.kind = Command::Kind::kPutNew, .value = "a"};
  EXPECT_TRUE(key.apply(put_new, {1, 1}).outcome.done);
  EXPECT_EQ(key.apply(put_new, {1, 2}).kind, Kind::kUnchanged);
  Command replace{.kind = Command::Kind::kReplace, .value = "b", .version = key.record->version};
  EXPECT_TRUE(key.apply(replace, {1, 3}).outcome.done);
  EXPECT_EQ(key.apply(replace, {1, 4}).kind, Kind::kUnchanged);
  EXPECT_EQ(key.record->value, "b");
  EXPECT_TRUE(key.apply({.kind = Command::Kind::kErase}, {1, 5}).outcome.done);
  EXPECT_EQ(key.apply({.kind = Command::Kind::kErase}, {1, 6}).kind, Kind::kUnchanged);
  EXPECT_TRUE(key.apply(put_new, {1, 7}).outcome.done);
}

TEST(Command, SwapsByTheVersionOfTheRecordAlsoOfAKeyThatIsNotThere) {
  Key key;
  Command swap{.kind = Command::Kind::kSwap, .value = "a"};
  EXPECT_TRUE(key.apply(swap, {1, 1}).outcome.done);
  EXPECT_FALSE(key.apply(swap, {1, 2}).outcome.done);
  Command erase{.kind = Command::Kind::kSwapErase, .version = key.record->version - 1};
  EXPECT_FALSE(key.apply(erase, {1, 3}).outcome.done);
  erase.version = key.record->version;
  EXPECT_TRUE(key.apply(erase, {1, 4}).outcome.done);
  EXPECT_TRUE(key.record->is_erased);
  EXPECT_FALSE(key.apply(swap, {1, 5}).outcome.done) << "there is a record of the key";
  swap.version = key.record->version;
  EXPECT_TRUE(key.apply(swap, {1, 6}).outcome.done);
}

TEST(Command, AKeyWhoseEndHasComeIsNotThere) {
  Key key;
  key.apply({.kind = Command::Kind::kPut, .value = "5", .expires_ms = 2000}, {1, 1});
  EXPECT_EQ(key.apply(add(1), {1, 2}).outcome.number, 6);
  EXPECT_EQ(key.record->expires_ms, 2000) << "adding leaves the end";
  Command put_new{.kind = Command::Kind::kPutNew, .value = "new"};
  key.now_ms = 1999;
  EXPECT_FALSE(key.apply(put_new, {1, 3}).outcome.done);
  key.now_ms = 2000;
  Key other = key;
  EXPECT_EQ(other.apply(add(1), {1, 3}).outcome.number, 1);
  EXPECT_EQ(other.record->expires_ms, kNoEnd);
  EXPECT_FALSE(key.apply({.kind = Command::Kind::kErase}, {1, 4}).outcome.done);
  EXPECT_TRUE(key.apply(put_new, {1, 5}).outcome.done);
  EXPECT_EQ(key.record->expires_ms, kNoEnd);
}

TEST(Command, AddsToNumbersAndToNothing) {
  Key key;
  EXPECT_EQ(key.apply(add(5), {1, 1}).outcome.number, 5);
  EXPECT_EQ(key.apply(add(-7), {1, 2}).outcome.number, -2);
  key.apply(put("9223372036854775807"), {1, 3});
  EXPECT_TRUE(key.apply(add(1), {1, 4}).outcome.is_no_number);
  key.apply(put("text"), {1, 5});
  EXPECT_TRUE(key.apply(add(1), {1, 6}).outcome.is_no_number);
  EXPECT_EQ(key.record->value, "text");
}

TEST(Command, ARequestThatComesTwiceIsAnsweredAsAtFirst) {
  Key key;
  const Outcome first = key.apply(add(1), {7, 1}).outcome;
  key.apply(add(1), {8, 1});
  const Decision again = key.apply(add(1), {7, 1});
  EXPECT_EQ(again.kind, Kind::kRepeated);
  EXPECT_EQ(again.outcome, first);
  EXPECT_EQ(key.record->value, "2");
  key.apply(add(1), {7, 2});
  EXPECT_EQ(key.apply(add(1), {7, 1}).kind, Kind::kOutdated);
}

TEST(Command, ARequestIsRememberedBeyondTheEndOfItsKey) {
  Key key;
  key.apply(add(1), {7, 1});
  key.apply({.kind = Command::Kind::kErase}, {8, 1});
  EXPECT_EQ(key.apply(add(1), {7, 1}).kind, Kind::kRepeated);
  EXPECT_TRUE(key.record->is_erased);
}

TEST(Command, ARequestThatMayBeForgottenIsNotCarriedOutAgain) {
  Key key;
  key.apply(add(1), {7, 1});
  for (uint64_t client = 100; client < 100 + kRememberedMax; ++client) {
    // Whoever is new knows a version from before it asked.
    EXPECT_EQ(key.apply(add(1), {client, 1}, key.version).kind, Kind::kChanged);
  }
  EXPECT_EQ(key.record->requests.size(), kRememberedMax);
  EXPECT_EQ(key.apply(add(1), {7, 1}).kind, Kind::kDoubtful);
  EXPECT_EQ(key.apply(add(1), {7, 2}, key.version).kind, Kind::kChanged);
}

TEST(ChainFormat, ARecordIsTheSameWhenItIsRead) {
  Key key;
  key.apply(add(1), {7, 1});
  key.apply(add(1), {8, 1});
  const Result<Record> again = decode_record(as_bytes(encode_record(*key.record)));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *key.record);
  EXPECT_FALSE(decode_record(as_bytes("")));
  EXPECT_FALSE(decode_record(as_bytes("\x01xxxx")));
}

TEST(ChainFormat, WhatIsBeyondTheLimitsIsRefused) {
  GetRequest get{.key = std::string(kChainKeyMax, 'k')};
  EXPECT_TRUE(decode_get_request(as_bytes(encode(get))));
  get.key += 'k';
  EXPECT_FALSE(decode_get_request(as_bytes(encode(get))));
  get.key = "";
  EXPECT_FALSE(decode_get_request(as_bytes(encode(get))));
  CopyRequest copy;
  for (size_t i = 0; i <= kCopyKeysMax; ++i) copy.items.push_back({"k", {.version = 1}});
  EXPECT_FALSE(decode_copy_request(as_bytes(encode(copy))));
  copy.items.pop_back();
  EXPECT_TRUE(decode_copy_request(as_bytes(encode(copy))));
}

}  // namespace
}  // namespace cairn::kv::chain
