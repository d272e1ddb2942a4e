// SPDX-License-Identifier: Apache-2.0
#include "meta/wire_format.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace cairn::meta {
namespace {

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

std::vector<CallArgs> some_requests() {
  Batch batch;
  batch.if_absent("a").if_created("b", Revision(7)).if_value("c", "x");
  batch.put("a", std::string("\0\xff", 2), LeaseId(9)).remove("b");
  return {GetRequest{"key"},
          ListOptions{.range = Range::prefix("p"), .limit = 3, .at = Revision(5)},
          batch,
          GrantRequest{5_s},
          KeepAliveRequest{LeaseId(1)},
          RevokeRequest{LeaseId(2)},
          CompactRequest{Revision(3)},
          WatchRequest{Range::all(), Revision(4)}};
}

TEST(WireFormat, RequestsComeBackAsTheyWere) {
  for (const CallArgs& request : some_requests()) {
    const std::string body = encode(request);
    const Result<CallArgs> decoded = decode_args(call_of(request), as_bytes(body));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(call_of(*decoded), call_of(request));
    EXPECT_EQ(encode(*decoded), body);
  }
}

TEST(WireFormat, AnswersComeBackAsTheyWere) {
  const Entry entry{"k", "v", Revision(2), Revision(3), LeaseId(4)};
  const std::vector<std::pair<Call, Answer>> answers = {
      {Call::kGet, std::optional<Entry>()},
      {Call::kGet, std::optional<Entry>(entry)},
      {Call::kList, Page{{entry, entry}, Revision(3), true}},
      {Call::kCommit, Committed{Revision(3), 5}},
      {Call::kCommit, Committed{Revision(3), std::nullopt}},
      {Call::kGrant, Lease{LeaseId(3), 5_s}},
      {Call::kKeepAlive, Duration(5_s)},
      {Call::kRevoke, std::monostate()},
      {Call::kCompact, std::monostate()},
      {Call::kWatch, WatchPush{{Change{Revision(3), {{entry, true}}}}, Revision(4)}}};
  for (const auto& [call, answer] : answers) {
    const Result<Answer> decoded = decode_answer(call, as_bytes(encode(answer)));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, answer);
  }
}

TEST(WireFormat, HasTheseBytes) {
  EXPECT_EQ(hex(encode(CallArgs(GetRequest{"ab"}))), "020000006162");
  EXPECT_EQ(hex(encode(CallArgs(WatchRequest{Range::all(), Revision(4)}))),
            "00000000"
            "00000000"
            "0400000000000000");
}

TEST(WireFormat, BodiesThatAreShortLongOrOddAreCorrupt) {
  for (const CallArgs& request : some_requests()) {
    const std::string body = encode(request);
    for (size_t size = 0; size < body.size(); ++size) {
      EXPECT_FALSE(decode_args(call_of(request), as_bytes(body).first(size)));
    }
    EXPECT_FALSE(decode_args(call_of(request), as_bytes(body + '\0')));
  }
  EXPECT_FALSE(decode_answer(Call::kGet, as_bytes("\x02")));
  const std::string many("\xff\xff\xff\xff", 4);
  EXPECT_FALSE(decode_args(Call::kCommit, as_bytes(many + many)));
}

}  // namespace
}  // namespace cairn::meta
