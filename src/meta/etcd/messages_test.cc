// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/messages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cairn::meta::etcd {
namespace {

TEST(EtcdMessages, RequestsAreTheseTexts) {
  EXPECT_EQ(range_request({.range = Range::one("a"), .limit = 1, .at = Revision(7)}),
            R"({"key":"YQ==","range_end":"YQA=","limit":"1","revision":"7"})");
  EXPECT_EQ(range_request({.range = Range::all(), .limit = 5}),
            R"({"key":"AA==","range_end":"AA==","limit":"5","revision":"0"})");
  Batch batch;
  batch.if_absent("a").if_value("b", "x").put("a", "1", LeaseId(9)).remove("b");
  EXPECT_EQ(
      txn_request(batch),
      R"({"compare":[{"key":"YQ==","target":"CREATE","result":"EQUAL","create_revision":"0"},)"
      R"({"key":"Yg==","target":"VALUE","result":"EQUAL","value":"eA=="}],)"
      R"("success":[{"request_put":{"key":"YQ==","value":"MQ==","lease":"9"}},)"
      R"({"request_delete_range":{"key":"Yg=="}}],)"
      R"("failure":[{"request_range":{"key":"YQ=="}},{"request_range":{"key":"Yg=="}}]})");
  EXPECT_EQ(grant_request(1500_ms), R"({"TTL":"2"})");
  EXPECT_EQ(lease_request(LeaseId(3)), R"({"ID":"3"})");
  EXPECT_EQ(compaction_request(Revision(3)), R"({"revision":"3"})");
  EXPECT_EQ(watch_request(Range::prefix("a"), Revision(3)),
            R"({"create_request":{"key":"YQ==","range_end":"Yg==","start_revision":"3",)"
            R"("progress_notify":true,"fragment":true}})");
}

TEST(EtcdMessages, PagesAreRead) {
  const Result<Page> page = read_page(
      R"({"header":{"revision":"9"},"kvs":[{"key":"YQ==","create_revision":"2",)"
      R"("mod_revision":"3","version":"2","value":"MQ==","lease":"5"}],"more":true,"count":"4"})");
  ASSERT_TRUE(page);
  EXPECT_EQ(*page, (Page{{{"a", "1", Revision(2), Revision(3), LeaseId(5)}}, Revision(9), true}));
  EXPECT_TRUE(read_page(R"({"header":{"revision":"1"}})")->entries.empty());
}

TEST(EtcdMessages, RefusalSaysWhichPreconditionFailed) {
  Batch batch;
  batch.if_absent("a").if_modified("b", Revision(4)).if_value("c", "x");
  const std::string there = R"({"response_range":{"kvs":[{"key":"Yg==","create_revision":"4",)"
                            R"("mod_revision":"4","version":"1","value":"MQ=="}]}})";
  const std::string nothing = R"({"response_range":{"header":{}}})";
  const std::string begin = R"({"header":{"revision":"9"},"responses":[)";
  EXPECT_EQ(read_committed(begin + nothing + "," + there + "," + nothing + "]}", batch)->failed,
            2U);
  EXPECT_EQ(read_committed(begin + nothing + "," + nothing + "," + nothing + "]}", batch)->failed,
            1U);
  EXPECT_EQ(read_committed(begin + there + "," + nothing + "," + nothing + "]}", batch)->failed,
            0U);
  EXPECT_FALSE(read_committed(begin + nothing + "]}", batch)) << "too few";
  const auto done = read_committed(R"({"header":{"revision":"9"},"succeeded":true})", batch);
  EXPECT_EQ(*done, (Committed{Revision(9), std::nullopt}));
}

TEST(EtcdMessages, LeasesAreRead) {
  EXPECT_EQ(*read_granted(R"({"header":{},"ID":"7","TTL":"2"})"), (Lease{LeaseId(7), 2_s}));
  EXPECT_EQ(*read_kept_alive(R"({"result":{"ID":"7","TTL":"2"}})"), 2_s);
  EXPECT_EQ(*read_kept_alive(R"({"result":{"ID":"7"}})"), std::nullopt);
  EXPECT_FALSE(read_kept_alive(R"({"error":{}})"));
}

TEST(EtcdMessages, WatchesAreReadCommitByCommit) {
  const Result<WatchMessage> message = read_watch(
      R"({"result":{"header":{"revision":"9"},"fragment":true,"events":[)"
      R"({"kv":{"key":"YQ==","create_revision":"2","mod_revision":"2","value":"MQ=="}},)"
      R"({"type":"DELETE","kv":{"key":"Yg==","mod_revision":"2"}},)"
      R"({"type":"PUT","kv":{"key":"YQ==","create_revision":"2","mod_revision":"3"}}]}})");
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->is_fragment);
  ASSERT_EQ(message->changes.size(), 2U);
  EXPECT_EQ(message->changes[0].events.size(), 2U);
  EXPECT_TRUE(message->changes[0].events[1].removed);
  EXPECT_TRUE(read_watch(R"({"result":{"created":true}})")->is_created);
  EXPECT_TRUE(read_watch(R"({"result":{"canceled":true,"compact_revision":"5"}})")->is_compacted);
  EXPECT_EQ(read_watch(R"({"error":{"http_code":503}})").error().code(), Errc::kReset);
}

TEST(EtcdMessages, ErrorsSayWhatToDo) {
  const auto code = [](uint16_t status, const char* body) {
    return read_error(status, body).code();
  };
  EXPECT_EQ(code(404, R"({"error":"etcdserver: requested lease not found","code":5})"),
            Errc::kNotFound);
  EXPECT_EQ(code(400, R"({"error":"mvcc: required revision has been compacted","code":11})"),
            Errc::kNotFound);
  EXPECT_EQ(code(400, R"({"error":"mvcc: required revision is a future revision","code":11})"),
            Errc::kInvalid);
  EXPECT_EQ(code(503, R"({"error":"etcdserver: no leader","code":14})"), Errc::kReset);
  EXPECT_EQ(code(400, R"({"error":"etcdserver: mvcc: database space exceeded","code":8})"),
            Errc::kNoSpace);
  EXPECT_EQ(code(401, R"({"error":"etcdserver: invalid auth token","code":16})"), Errc::kDenied);
  EXPECT_EQ(code(404, "404 page not found"), Errc::kUnsupported);
  EXPECT_EQ(code(502, "<html>"), Errc::kReset);
}

TEST(EtcdMessages, WhatIsNoAnswerIsCorrupt) {
  const std::vector<std::string> odd = {
      "",
      "[]",
      "{",
      "null",
      "{}",
      R"({"header":7})",
      R"({"header":{"revision":"x"}})",
      R"({"header":{"revision":"-1"}})",
      R"({"header":{"revision":"1"},"kvs":7})",
      R"({"header":{"revision":"1"},"kvs":[7]})",
      R"({"header":{"revision":"1"},"kvs":[{"key":"?","mod_revision":"1"}]})",
      R"({"header":{"revision":"1"},"kvs":[{"key":"YQ=="}]})",
      R"({"header":{"revision":"1"},"kvs":[{"mod_revision":"1"}]})",
  };
  for (const std::string& text : odd) EXPECT_FALSE(read_page(text)) << text;
  for (const std::string& text : odd) EXPECT_FALSE(read_granted(text)) << text;
  EXPECT_FALSE(read_watch(R"({"result":{"events":[{"kv":7}]}})"));
  EXPECT_FALSE(read_watch(R"({"result":{"events":[{}]}})"));
  EXPECT_FALSE(read_watch(R"({"result":{"events":[{"type":"X","kv":{"key":"YQ==",)"
                          R"("mod_revision":"1"}}]}})"));
}

}  // namespace
}  // namespace cairn::meta::etcd
