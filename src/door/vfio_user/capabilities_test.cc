// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/capabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {
namespace {

std::vector<std::byte> version(std::string_view json, Version number = {}) {
  std::vector<std::byte> payload(sizeof(Version));
  store(payload, number);
  std::ranges::copy(as_bytes(json), std::back_inserter(payload));
  payload.push_back(std::byte{0});
  return payload;
}

std::string_view json_of(const std::vector<std::byte>& payload) {
  return as_text(Bytes(payload).subspan(sizeof(Version), payload.size() - sizeof(Version) - 1));
}

// As QEMU says it.
constexpr std::string_view kQemu =
    R"({"capabilities": {"migration": {"pgsize": 4096, "max_bitmap_size": 268435456}, )"
    R"("max_msg_fds": 16, "max_data_xfer_size": 1048576, "pgsizes": 4096, )"
    R"("max_dma_maps": 65535, "write_multiple": true}})";

TEST(Capabilities, AreTakenFromWhatQemuSays) {
  const std::vector<std::byte> payload = version(kQemu, {.major = 0, .minor = uint16_t{0}});
  const Result<Capabilities> client = parse_version(payload);
  ASSERT_TRUE(client.has_value());
  EXPECT_EQ(client->minor, 0);
  EXPECT_EQ(client->descriptors_max, 16u);
  EXPECT_EQ(client->transfer_max, 1048576u);
  EXPECT_TRUE(client->write_multiple);
}

TEST(Capabilities, AnAnswerNamesWhatTheClientNamedAndIsNoLonger) {
  const std::vector<std::byte> payload = version(kQemu, {.major = 0, .minor = uint16_t{0}});
  const std::vector<std::byte> answer = answer_version(payload);
  EXPECT_EQ(load<Version>(answer).minor, 0);
  EXPECT_EQ(json_of(answer),
            R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"pgsizes":4096,)"
            R"("max_dma_maps":1024,"write_multiple":true,"migration":{"pgsize":4096}}})");
  EXPECT_LE(answer.size(), payload.size());  // QEMU has no more room
  EXPECT_EQ(json_of(answer_version(version(R"({"capabilities":{"max_msg_fds":1}})"))),
            R"({"capabilities":{"max_msg_fds":16}})");
}

TEST(Capabilities, WhoSaysNothingIsToldTheLimits) {
  std::vector<std::byte> payload(sizeof(Version));
  store(payload, Version{.major = 0, .minor = uint16_t{7}});
  const Result<Capabilities> client = parse_version(payload);
  ASSERT_TRUE(client.has_value());
  EXPECT_EQ(client->descriptors_max, kDescriptorsDefault);
  EXPECT_EQ(client->transfer_max, kTransferDefault);
  EXPECT_FALSE(client->write_multiple);
  EXPECT_EQ(client->minor, kMinor);
  EXPECT_EQ(json_of(answer_version(payload)),
            R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576}})");
  EXPECT_TRUE(parse_version(version("{}")).has_value());
  EXPECT_TRUE(parse_version(version(R"({"capabilities":{},"other":[1,{}]})")).has_value());
}

TEST(Capabilities, OurOwnClientAndServerUnderstandEachOther) {
  const std::vector<std::byte> proposal = propose_version();
  ASSERT_TRUE(parse_version(proposal).has_value());
  const Result<Capabilities> server = parse_version(answer_version(proposal));
  ASSERT_TRUE(server.has_value());
  EXPECT_EQ(server->descriptors_max, kDescriptorsMax);
  EXPECT_EQ(server->transfer_max, kTransferMax);
  EXPECT_TRUE(server->write_multiple);
}

TEST(Capabilities, WhatIsNoneIsRefused) {
  EXPECT_EQ(parse_version({}).error(), Errc::kInvalid);
  EXPECT_EQ(parse_version(version("{}", {.major = uint16_t{1}})).error(), Errc::kUnsupported);
  const std::string deep = std::string(2000, '[') + std::string(2000, ']');
  const std::string long_text = "{\"a\":\"" + std::string(kVersionTextMax, 'x') + "\"}";
  for (const std::string_view text :
       {"", "{", "[]", "7", "null", "{\"capabilities\":7}", "{\"capabilities\":{}} x",
        R"({"capabilities":{"max_msg_fds":"7"}})", R"({"capabilities":{"max_msg_fds":-1}})",
        R"({"capabilities":{"max_msg_fds":1.5}})", R"({"capabilities":{"max_data_xfer_size":[]}})",
        R"({"capabilities":{"write_multiple":1}})", "{\"capabilities\":\xff\xfe}"}) {
    EXPECT_EQ(parse_version(version(text)).error(), Errc::kInvalid) << text;
  }
  EXPECT_EQ(parse_version(version(deep)).error(), Errc::kInvalid);
  EXPECT_EQ(parse_version(version(long_text)).error(), Errc::kInvalid);
  std::vector<std::byte> unended = version("{}");
  unended.pop_back();
  EXPECT_EQ(parse_version(unended).error(), Errc::kInvalid);
}

}  // namespace
}  // namespace cairn::door::vfio_user
