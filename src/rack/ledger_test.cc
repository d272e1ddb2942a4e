// SPDX-License-Identifier: Apache-2.0
#include "rack/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rack/space_command.h"

namespace cairn::rack {
namespace {

const Asker kFriend = {.host = "nqn.friend", .nqn = "nqn.a"};

Shelf a_shelf(uint64_t mib) {
  return {.name = "d0",
          .place = {.address = "10.0.0.1:4420", .nqn = "nqn.a"},
          .room = {.bytes = mib * kUnit, .iops = 100, .bandwidth = 100}};
}

SpaceRequest a_request(uint8_t id, uint64_t mib) {
  return {.id = {id}, .drive = "vm", .shelf = "d0", .amount = {.bytes = mib * kUnit}};
}

TEST(Ledger, GivesWhatItHasAndNoMore) {
  Ledger ledger({a_shelf(10)}, {});
  const Result<Contract> first = ledger.drafted(kFriend, a_request(1, 6));
  ASSERT_TRUE(first);
  ledger.add(*first);
  EXPECT_EQ(ledger.spare("d0").bytes, 4 * kUnit);
  EXPECT_EQ(ledger.drafted(kFriend, a_request(2, 5)).error(), Errc::kNoSpace);
  EXPECT_TRUE(ledger.drafted(kFriend, a_request(2, 4)));
  SpaceRequest fast = a_request(3, 1);
  fast.amount.iops = 101;
  EXPECT_EQ(ledger.drafted(kFriend, fast).error(), Errc::kNoSpace);
  ledger.remove(first->id);
  EXPECT_EQ(ledger.spare("d0"), a_shelf(10).room);
}

TEST(Ledger, TheSameIdIsTheSameContractOrNone) {
  Ledger ledger({a_shelf(10)}, {});
  Contract made = *ledger.drafted(kFriend, a_request(1, 10));
  made.nsid = 7;
  ledger.add(made);
  EXPECT_EQ(ledger.drafted(kFriend, a_request(1, 10)), made);
  EXPECT_EQ(ledger.drafted(kFriend, a_request(1, 9)).error(), Errc::kExists);
  EXPECT_EQ(ledger.drafted({.host = "nqn.other", .nqn = "nqn.a"}, a_request(1, 10)).error(),
            Errc::kExists);
}

TEST(Ledger, AShelfIsForItsHostsAndThroughItsSubsystem) {
  Shelf shelf = a_shelf(10);
  shelf.hosts = {"nqn.friend"};
  const Ledger ledger({shelf}, {});
  EXPECT_TRUE(ledger.drafted(kFriend, a_request(1, 1)));
  const Asker stranger{.host = "nqn.stranger", .nqn = "nqn.a"};
  EXPECT_EQ(ledger.drafted(stranger, a_request(1, 1)).error(), Errc::kDenied);
  const Asker elsewhere{.host = "nqn.friend", .nqn = "nqn.b"};
  EXPECT_EQ(ledger.drafted(elsewhere, a_request(1, 1)).error(), Errc::kNotFound);
}

TEST(Ledger, OnlyTheOwnerReleasesAndThroughTheSameSubsystem) {
  Ledger ledger({a_shelf(10)}, {});
  const Contract made = *ledger.drafted(kFriend, a_request(1, 1));
  EXPECT_TRUE(ledger.may_release(kFriend, made));
  EXPECT_FALSE(ledger.may_release({.host = "nqn.friend", .nqn = "nqn.b"}, made));
  EXPECT_FALSE(ledger.may_release({.host = "nqn.other", .nqn = "nqn.a"}, made));
}

TEST(Ledger, AShelfThatBecameSmallerHasNothingToSpare) {
  const Contract old{.id = {1}, .shelf = "d0", .amount = {.bytes = 20 * kUnit, .iops = 500}};
  const Ledger ledger({a_shelf(10)}, {old});
  EXPECT_EQ(ledger.spare("d0"), (Amount{.bytes = 0, .iops = 0, .bandwidth = 100}));
  EXPECT_EQ(ledger.spare("gone"), Amount{});
}

TEST(LedgerProperty, ContractsAndSpareAreTheShelf) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<uint8_t, uint8_t>>& steps) {
    Ledger ledger({a_shelf(40)}, {});
    for (const auto& [id, mib] : steps) {
      const uint8_t known = id % 8;
      if (mib % 3 == 0) ledger.remove({known});
      const Result<Contract> draft = ledger.drafted(kFriend, a_request(known, mib % 16));
      if (draft) ledger.add(*draft);
      uint64_t given = 0;
      for (const auto& [each, contract] : ledger.contracts()) given += contract.amount.bytes;
      RC_ASSERT(given + ledger.spare("d0").bytes == 40 * kUnit);
    }
  }));
}

TEST(SpaceCommand, EveryRefusalArrivesAsWhatItWas) {
  // What the wire has no status for arrives as what the caller can do about it.
  const std::map<Errc, Errc> others = {{Errc::kUnsupported, Errc::kInvalid},
                                       {Errc::kCorrupt, Errc::kInvalid},
                                       {Errc::kReset, Errc::kIo},
                                       {Errc::kUnreachable, Errc::kIo},
                                       {Errc::kTimedOut, Errc::kIo},
                                       {Errc::kCancelled, Errc::kIo}};
  for (int number = 1; number <= static_cast<int>(Errc::kCancelled); ++number) {
    const auto code = static_cast<Errc>(number);
    const nvme::Answer answer = answer_of(fail(code, "why"));
    EXPECT_FALSE(answer.ok());
    const auto other = others.find(code);
    EXPECT_EQ(outcome_of(answer.status, 0).error(), other == others.end() ? code : other->second)
        << name(code);
  }
  const nvme::Answer answer = answer_of(7u);
  EXPECT_EQ(outcome_of(answer.status, static_cast<uint32_t>(answer.result)), 7u);
}

}  // namespace
}  // namespace cairn::rack
