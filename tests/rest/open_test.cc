// SPDX-License-Identifier: Apache-2.0
// What opens, what does not and why, and that nothing is written then.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "rest/object_label_format.h"
#include "rest/scene.h"

namespace cairn::rest {
namespace {

constexpr const char* kLabel = "/v/label";

task::Task<void> open_to_be_refused(env::Env& env, const char* options, std::string& why) {
  why = co_await why_not(env, options);
}

// Why it does not open with `options`; empty: it does.
std::string refusal_of(HttpServer& server, const char* options) {
  std::string why = "it was not asked";
  with_server(server, [&](env::Env& env) { return open_to_be_refused(env, options, why); });
  return why;
}

// Opens with `options` and expects `message`; nothing may change.
void refuses(HttpServer& server, const char* options, const char* message) {
  const auto before = server.objects.size();
  const uint64_t puts = server.count["PUT"];
  const std::string why = refusal_of(server, options);
  EXPECT_NE(why.find(message), std::string::npos) << why;
  EXPECT_EQ(why.find(kFolder), 0u) << why;
  EXPECT_EQ(server.objects.size(), before);
  EXPECT_EQ(server.count["PUT"], puts);
}

void opens(HttpServer& server, const char* options) { EXPECT_EQ(refusal_of(server, options), ""); }

TEST(RestOpen, RemembersWhatTheDriveIs) {
  HttpServer server;
  refuses(server, "", "there is no drive yet: add ?size=1G");
  opens(server, "?size=1M&object=32K&block=512");
  const auto label = ObjectLabel::decode(as_bytes(server.objects[kLabel].bytes));
  ASSERT_TRUE(label);
  EXPECT_EQ(label->blocks, 2048u);
  EXPECT_EQ(label->generation, 1u);
  opens(server, "");
  opens(server, "?size=1M&object=32K&block=512");
  const auto again = ObjectLabel::decode(as_bytes(server.objects[kLabel].bytes));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, label->id);
  EXPECT_EQ(again->generation, 3u);
  EXPECT_NE(again->owner, label->owner);
  refuses(server, "?size=2M", "size=2M was given, and the drive there has 1M");
  refuses(server, "?object=64K", "object=64K was given, and the drive there has 32K");
  refuses(server, "?block=4096", "block=4096 was given, and the drive there has 512");
}

TEST(RestOpen, RefusesShapesThatMakeNoDrive) {
  HttpServer server;
  refuses(server, "?size=1000", "the size is nothing");
  refuses(server, "?size=10000", "the size is no multiple of the block");
  refuses(server, "?size=1M&object=4096&block=8192", "an object is a power of two");
  refuses(server, "?size=64T&object=4096", "needs larger objects");
}

TEST(RestOpen, RefusesWhatIsNotItsOwn) {
  HttpServer server;
  server.objects["/v/00000000"] = {.bytes = "somebody's file", .version = 1};
  refuses(server, "?size=1M", "there are objects and no label");
  server.objects[kLabel] = {.bytes = "a page that somebody wrote", .version = 2};
  refuses(server, "?size=1M", "no label of a drive");
  server.objects[kLabel].bytes = std::string(kLabelSize, 'x');
  refuses(server, "?size=1M", "no label of a drive");
}

TEST(RestOpen, RefusesDamagedLabelsAndOtherVersions) {
  HttpServer server;
  opens(server, "?size=1M");
  const std::string good = server.objects[kLabel].bytes;
  for (size_t at = 0; at < 96; at += 5) {
    server.objects[kLabel].bytes = good;
    server.objects[kLabel].bytes[at] ^= 0x10;
    refuses(server, "", ": ");
  }
  // Version 2, with the right checksum: offsets 24 and 28 of drive::Label.
  std::string other = good;
  other[24] = 2;
  other.replace(28, 4, 4, '\0');
  const uint32_t checksum = crc32c(as_bytes(other));
  other.replace(28, 4, reinterpret_cast<const char*>(&checksum), 4);
  server.objects[kLabel].bytes = other;
  refuses(server, "", "another version");
}

TEST(RestOpen, SaysWhatTheServerRefuses) {
  const std::pair<uint16_t, const char*> cases[] = {
      {301, "redirects"},       {403, "give this host access"},     {405, "switch GET, HEAD, PUT"},
      {413, "raise its limit"}, {409, "no such folder: create it"}, {507, "is full"},
      {503, "start it again"},  {500, "its log says why"},          {418, "refuses it"}};
  for (const auto& [status, message] : cases) {
    HttpServer server;
    server.trouble = [status](const ServedRequest& request) {
      return Trouble{.status = request.method == "PUT" ? status : uint16_t{0}};
    };
    const std::string why = refusal_of(server, "?size=1M");
    EXPECT_NE(why.find(message), std::string::npos) << why;
    EXPECT_TRUE(server.objects.empty());
  }
}

TEST(RestOpen, SaysThatNobodyAnswers) {
  sim::Cluster cluster;
  cluster.node("server");
  sim::Node& host = cluster.node("host");
  host.start([](env::Env& env) -> task::Task<void> {
    const std::string why = co_await why_not(env, "?size=1M&retries=1");
    EXPECT_NE(why.find("unreachable"), std::string::npos) << why;
  });
  ASSERT_TRUE(cluster.run_until([&] { return !host.is_running(); }, 100_s));
}

}  // namespace
}  // namespace cairn::rest
