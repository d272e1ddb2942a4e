// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter_wire_format.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cairn::arbiter {
namespace {

constexpr volume::Session kSession{.volume = VolumeId(1), .epoch = volume::Epoch(2), .turn = 3};

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

MapEntry some_entry() {
  MapEntry entry;
  entry.add({.mega_vol = MegaVolId(5), .extent = 7, .is_stale = false});
  entry.add({.mega_vol = MegaVolId(6), .extent = 8, .is_stale = true});
  return entry;
}

std::vector<CallArgs> all_requests() {
  return {volume::OpenArgs{.volume = "vol0", .client = "me", .take_over = true},
          RenewRequest{kSession},
          CloseRequest{kSession, true},
          TableRequest{kSession, 9},
          AllocateRequest{kSession, {1, 2}},
          ReleaseRequest{kSession, {3}},
          ReportRequest{kSession, {{.extent = 4, .mega_vol = MegaVolId(1), .is_stale = true}}},
          RelocateRequest{kSession, {.extent = 4, .synced = MegaVolId(1), .drop = {}, .add = true}},
          BeginCopiesRequest{kSession, {4, 5}},
          EndCopiesRequest{kSession, {{.extent = 4, .target = some_entry()}, {.extent = 5}}},
          AskedRequest{kSession, 5_s},
          FreezeRequest{kSession, "vol0@monday", true},
          AddArgs{.uri = "nvme-tcp://a/b", .box = "b", .rack = "r", .preference = -3},
          DrainRequest{MegaVolId(2), false},
          RemoveRequest{MegaVolId(2), true},
          CreateArgs{.name = "vol0",
                     .bytes = 1 << 20,
                     .replicas = 3,
                     .weights = volume::kPack,
                     .terms = {.weight = 2, .floor = 3, .cap = 4}},
          ResizeRequest{"vol0", 5},
          WeightsRequest{"vol0", volume::kPack},
          ReplicasRequest{"vol0", 2},
          DestroyRequest{"vol0", true},
          TermsRequest{"vol0", {.weight = 2, .floor = 3, .cap = 4}},
          SnapshotRequest{"vol0", "monday"},
          CloneRequest{"vol0@monday", "vol1"},
          PoolRequest{},
          VolumesRequest{"vol0"},
          VolumeRequest{"vol0"},
          StatusRequest{}};
}

std::vector<std::pair<Call, Answer>> all_answers() {
  const MegaVolInfo info{.id = MegaVolId(1), .uri = "u", .box = "b", .rack = "", .extents = 9};
  const VolumeView view{.record = {.id = VolumeId(1), .name = "vol0", .extents = 9, .holder = "h"},
                        .terms = {.weight = 5},
                        .bytes = 8,
                        .extent_bytes = 1,
                        .mapped = 2,
                        .lacking = 1};
  ScoreMatrix matrix{.extent = 3, .rows = {{.id = MegaVolId(1), .score = -5, .is_chosen = true}}};
  return {{Call::kOpen,
           volume::Opened{
               .session = kSession, .lease = 5_s, .mega_vols = {info}, .unfenced = {MegaVolId(3)}}},
          {Call::kRenew,
           volume::Renewed{.lease = 5_s, .mega_vols = {info, info}, .unfenced = {MegaVolId(3)}}},
          {Call::kClose, std::monostate()},
          {Call::kTable, Mappings{{.extent = 1, .entry = some_entry()}, {.extent = 2}}},
          {Call::kRelocate, volume::Mapping{.extent = 1, .entry = some_entry()}},
          {Call::kBeginCopies,
           CopyPlaces{{.now = {.extent = 1, .entry = some_entry(), .is_shared = true},
                       .target = some_entry()}}},
          {Call::kEndCopies, Mappings{{.extent = 1, .entry = some_entry()}}},
          {Call::kAsked, volume::Asked{.snapshot = "vol0@monday"}},
          {Call::kFreeze, std::monostate()},
          {Call::kSnapshot, view},
          {Call::kAddDrive, info},
          {Call::kCreate, view},
          {Call::kPool, PoolView{.drives = {{.info = info, .free = 3, .unfenced = 2}}}},
          {Call::kVolumes, VolumePage{.volumes = {view, view}, .more = true}},
          {Call::kVolume,
           VolumeDetail{.volume = view, .drives = {{MegaVolId(1), 2}}, .matrices = {matrix}}},
          {Call::kStatus, ArbiterView{.host = "h", .is_leading = true, .problem = "p"}}};
}

TEST(ArbiterWireFormat, RequestsComeBackAsTheyWere) {
  const std::vector<CallArgs> requests = all_requests();
  ASSERT_EQ(requests.size(), kLastCall);
  for (const CallArgs& request : requests) {
    const std::string body = encode(request);
    const Result<CallArgs> decoded = decode_args(call_of(request), as_bytes(body));
    ASSERT_TRUE(decoded) << request.index();
    EXPECT_EQ(call_of(*decoded), call_of(request));
    EXPECT_EQ(encode(*decoded), body);
  }
}

TEST(ArbiterWireFormat, AnswersComeBackAsTheyWere) {
  for (const auto& [call, answer] : all_answers()) {
    const std::string body = encode(call, answer);
    const Result<Outcome> decoded = decode_outcome(call, as_bytes(body));
    ASSERT_TRUE(decoded) << static_cast<int>(call);
    EXPECT_EQ(std::get<Answer>(*decoded).index(), answer.index());
    EXPECT_EQ(encode(call, *decoded), body);
  }
}

TEST(ArbiterWireFormat, ARefusalKeepsTheArbitersWords) {
  const std::string body =
      encode(Call::kCreate, Refusal{.code = Errc::kNoSpace, .text = "the pool is full"});
  const Result<Outcome> decoded = decode_outcome(Call::kCreate, as_bytes(body));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::get<Refusal>(*decoded).code, Errc::kNoSpace);
  EXPECT_EQ(std::get<Refusal>(*decoded).text, "the pool is full");
}

TEST(ArbiterWireFormat, WhatIsCutOffOrLongerIsCorrupt) {
  for (const CallArgs& request : all_requests()) {
    const std::string body = encode(request);
    EXPECT_EQ(decode_args(call_of(request), as_bytes(body + "x")).error(), Errc::kCorrupt);
    for (size_t size = 0; size < body.size(); ++size) {
      EXPECT_EQ(decode_args(call_of(request), as_bytes(body).first(size)).error(), Errc::kCorrupt);
    }
  }
  for (const auto& [call, answer] : all_answers()) {
    const std::string body = encode(call, answer);
    EXPECT_EQ(decode_outcome(call, as_bytes(body + "x")).error(), Errc::kCorrupt);
    for (size_t size = 0; size < body.size(); ++size) {
      EXPECT_EQ(decode_outcome(call, as_bytes(body).first(size)).error(), Errc::kCorrupt);
    }
  }
}

TEST(ArbiterWireFormat, AnEntryWithoutALegInOrderIsCorrupt) {
  MapEntry entry = some_entry();
  std::string body = encode(Call::kRelocate, volume::Mapping{.extent = 1, .entry = entry});
  body.back() = static_cast<char>(2 | 3 << 2);  // two legs, both stale
  EXPECT_EQ(decode_outcome(Call::kRelocate, as_bytes(body)).error(), Errc::kCorrupt);
}

// So that processes of two versions understand each other.
TEST(ArbiterWireFormat, BytesAreAsTheyWereInVersionTwo) {
  EXPECT_EQ(hex(encode(CallArgs(AllocateRequest{kSession, {7}}))),
            "010000000000000002000000000000000300000000000000"
            "01000000"
            "07000000");
  EXPECT_EQ(hex(encode(Call::kAllocate, Mappings{{.extent = 9, .entry = some_entry()}})),
            "01000000"
            "09000000"
            "0700005000"
            "0800006000"
            "0000000000"
            "0a"
            "00");
  EXPECT_EQ(hex(encode(Call::kBeginCopies,
                       CopyPlaces{{.now = {.extent = 9, .entry = some_entry(), .is_shared = true},
                                   .target = some_entry()}})),
            "01000000"
            "09000000"
            "0700005000"
            "0800006000"
            "0000000000"
            "0a"
            "01"
            "0700005000"
            "0800006000"
            "0000000000"
            "0a");
  EXPECT_EQ(hex(encode(CallArgs(FreezeRequest{kSession, "a@b", true}))),
            "010000000000000002000000000000000300000000000000"
            "03000000"
            "614062"
            "01");
  EXPECT_EQ(hex(encode(Call::kDrain, Answer())), "00");
  EXPECT_EQ(hex(encode(Call::kDrain, Refusal{.code = Errc::kNotFound, .text = "no"})),
            "01"
            "02"
            "02000000"
            "6e6f");
}

}  // namespace
}  // namespace cairn::arbiter
