// SPDX-License-Identifier: Apache-2.0
#include "server/common/stranger_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/test_env.h"

namespace cairn::server {
namespace {

class Strangers : public ::testing::Test {
 protected:
  // The last line; empty: there was none.
  std::string last() {
    if (lines.empty()) return "";
    std::string line = lines.back();
    lines.clear();
    return line;
  }

  env::TestCores cores{1};
  std::vector<std::string> lines;
  StrangerLog log{cores[0],
                  [this](config::LogLevel, std::string_view line) { lines.emplace_back(line); }};
  const env::Address peer = env::Address::ip4(192, 0, 2, 9, 51234);
};

TEST_F(Strangers, AreNamedWithWhatToDo) {
  log.note(nvme::RefusedHost{"nqn.box", "nqn.host", peer, "it is not on the list", true});
  EXPECT_EQ(last(),
            "nqn.host at 192.0.2.9:51234 was refused: it is not on the list of hosts of nqn.box: "
            "'cairn host add nqn.host' lets it in");
  log.note(nvme::RefusedHost{"nqn.box", "", peer, "it is not on the list", true});
  EXPECT_EQ(last(),
            "the host at 192.0.2.9:51234 was refused: it gives no host NQN, and nqn.box is for the "
            "hosts on its list: give the host a name (nvme --hostnqn, SPDK's hostnqn:)");
  log.note(nvme::RefusedHost{"nqn.other", "nqn.host", peer, "no such subsystem is served here"});
  EXPECT_EQ(last(),
            "nqn.host at 192.0.2.9:51234 was refused at nqn.other: no such subsystem is served "
            "here");
  log.note(stream::RefusedConnection{peer, "there is no place"}, "NBD client");
  EXPECT_EQ(last(), "the NBD client at 192.0.2.9:51234 was turned away: there is no place");
}

TEST_F(Strangers, AreNamedWhenTheyWantMetadata) {
  log.note(rpc::RefusedClient{peer, "graph", "", "it may not commit: its role is reader"}, true);
  EXPECT_EQ(last(),
            "client 'graph' at 192.0.2.9:51234 was refused: it may not commit: its role is reader");
  const std::string identity =
      "NVMe1R01 box7 nqn.2026-11.io.cairn:metadata "
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
  log.note(rpc::RefusedClient{peer, "", identity, "no key of that name"}, false);
  EXPECT_EQ(last(),
            "client 'box7' at 192.0.2.9:51234 was turned away: no client of that name is in the "
            "file of --tls-keys");
  log.note(rpc::RefusedClient{peer, "", identity, "no key of that name"}, true);
  EXPECT_EQ(last(),
            "client 'box7' at 192.0.2.9:51234 was turned away: its key is not the one that this "
            "server has for that name");
  log.note(rpc::RefusedClient{peer, "", "\x1b[2J", "no key of that name"}, false);
  EXPECT_EQ(last(), "a client at 192.0.2.9:51234 was turned away: no key of that name");
}

TEST_F(Strangers, HaveALineASecondForEachReason) {
  const nvme::AuthenticationFailure key{"nqn.box", "nqn.host", peer, "it has another key"};
  const nvme::AuthenticationFailure late{"", "", peer, "it took too long"};
  log.note(key);
  EXPECT_EQ(last(),
            "nqn.host at 192.0.2.9:51234 could not authenticate for nqn.box: it has "
            "another key");
  log.note(key);
  EXPECT_EQ(last(), "");
  log.note(late);
  EXPECT_EQ(last(), "a host at 192.0.2.9:51234 could not authenticate: it took too long");
  cores.advance(1_s);
  log.note(key);
  EXPECT_EQ(last(),
            "nqn.host at 192.0.2.9:51234 could not authenticate for nqn.box: it has "
            "another key (and 1 more before)");
}

// What a stranger says is not for a terminal to obey.
TEST_F(Strangers, CannotWriteWhatTheyLike) {
  log.note(nvme::RefusedHost{"nqn.box", "a\x1b[2J\nb", peer, "it has ended"});
  const std::string line = last();
  EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

}  // namespace
}  // namespace cairn::server
