// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_format.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::server {
namespace {

TEST(ControlFormat, RequestsReadAsTheyWereWritten) {
  ControlRequest request{.command = ControlRequest::Command::kDriveAdd,
                         .nqn = "nqn.2026-11.io.cairn:a",
                         .nsid = 7,
                         .drive = "file:/a \"b\"\n,size=8G",
                         .size = UINT64_MAX,
                         .uuid = "x",
                         .group = 128,
                         .read_only = true,
                         .format = true,
                         .host = "nqn.h",
                         .state = nvme::AnaState::kChange,
                         .stack = "limit(mem:, iops=1)",
                         .layer = "0.1",
                         .args = {"take", "a b"},
                         .box = "/run/box.sock",
                         .via = "nvme-tcp://a/b",
                         .door = "vfio-user",
                         .socket = "/run/vm.sock,mode=polling",
                         .guest_timeout_ms = 7};
  const std::string line = encode_request(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Attempt<ControlRequest> read = decode_request(line);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(encode_request(*read), line);
  EXPECT_EQ(read->drive, request.drive);
  EXPECT_EQ(read->size, UINT64_MAX);
  EXPECT_EQ(read->state, nvme::AnaState::kChange);
  EXPECT_EQ(read->stack, request.stack);
  EXPECT_EQ(read->layer, request.layer);
  EXPECT_EQ(read->args, request.args);
  EXPECT_EQ(read->box, request.box);
  EXPECT_EQ(read->via, request.via);
  EXPECT_EQ(read->door, request.door);
  EXPECT_EQ(read->socket, request.socket);
  EXPECT_EQ(read->guest_timeout_ms, request.guest_timeout_ms);
}

TEST(ControlFormat, EveryCommandHasItsWord) {
  for (int i = 0; i <= static_cast<int>(ControlRequest::Command::kDoorRemove); ++i) {
    const auto command = static_cast<ControlRequest::Command>(i);
    const Attempt<ControlRequest> read = decode_request(encode_request({.command = command}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->command, command);
  }
}

TEST(ControlFormat, TheLineOnTheWire) {
  EXPECT_EQ(encode_request({.command = ControlRequest::Command::kDriveRemove, .nsid = 3}),
            R"({"version":1,"command":"drive.remove","nsid":3})");
  EXPECT_EQ(encode_reply(Json{{"nsid", 3}}),
            "{\"version\":1,\"ok\":true,\"result\":{\"nsid\":3}}\n");
  EXPECT_EQ(encode_reply(refuse("no")), "{\"version\":1,\"ok\":false,\"error\":\"no\"}\n");
}

TEST(ControlFormat, RepliesReadAsTheyWereWritten) {
  const Attempt<Json> good = decode_reply(encode_reply(Json{{"a", {1, 2}}}));
  ASSERT_TRUE(good);
  EXPECT_EQ(good->dump(), R"({"a":[1,2]})");
  const Attempt<Json> bad = decode_reply(encode_reply(refuse("a \"sentence\"")));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().text, "a \"sentence\"");
}

TEST(ControlFormat, AnythingElseIsRefused) {
  for (const char* line :
       {"", "null", "[]", "{", R"({"version":1,"ok":true})", R"({"version":1,"ok":1,"result":{}})",
        R"({"version":1,"ok":false,"error":3})", R"({"ok":true,"result":{}})",
        R"({"version":1,"ok":true,"result":[]})"}) {
    const Attempt<Json> read = decode_reply(line);
    ASSERT_FALSE(read) << line;
    EXPECT_TRUE(read.error().text.starts_with("the answer makes no sense")) << line;
  }
}

TEST(ControlFormat, WhatAnAnswerLacksIsEmpty) {
  const Json json = {{"text", "t"}, {"number", 1u}, {"flag", true}, {"list", {1}}};
  EXPECT_EQ(text_at(json, "text"), "t");
  EXPECT_EQ(number_at(json, "number"), 1u);
  EXPECT_TRUE(flag_at(json, "flag"));
  EXPECT_EQ(list_at(json, "list").size(), 1u);
  for (const char* name : {"none", "text", "number", "flag", "list"}) {
    if (std::string(name) != "text") EXPECT_EQ(text_at(json, name), "");
    if (std::string(name) != "number") EXPECT_EQ(number_at(json, name), 0u);
    if (std::string(name) != "flag") EXPECT_FALSE(flag_at(json, name));
    if (std::string(name) != "list") EXPECT_TRUE(list_at(json, name).empty());
  }
  EXPECT_EQ(text_at(Json(3), "x"), "");
}

}  // namespace
}  // namespace cairn::server
