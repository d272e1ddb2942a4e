// SPDX-License-Identifier: Apache-2.0
#include "server/support/redact.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::server {
namespace {

TEST(Redact, TakesOutWhatIsSecret) {
  for (const char* text :
       {"password=hunter2", "\"password\": \"hunter2\"", "tls_psk = 'hunter2'", "kv token: hunter2",
        "dhchap_key=hunter2&x=1", "nvme-tcp://h/NQN?secret=hunter2", "http://me:hunter2@host/path",
        "Authorization: Bearer hunter2", "DHHC-1:00:hunter2:", "NVMeTLSkey-1:01:hunter2:",
        "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2", "HOST_API_KEY=hunter2",
        "{\"secret\":\"hunter2 and more\"}"}) {
    EXPECT_EQ(redact(text).find("hunter2"), std::string::npos) << redact(text);
    EXPECT_NE(redact(text).find("[removed]"), std::string::npos) << redact(text);
  }
}

TEST(Redact, TakesOutWhatLooksDrawn) {
  const std::string base64 = "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=";
  const std::string hex(64, 'a');
  EXPECT_EQ(redact("x " + base64 + " y"), "x [removed] y");
  EXPECT_EQ(redact("psk0 " + hex), "psk0 [removed]");
}

TEST(Redact, LeavesWhatHelps) {
  for (const char* text :
       {"drive safe is degraded: mirror (layer 0), drive nvme-tcp://10.0.0.3/NQN (layer 0.1)",
        "key=/etc/cairn/drive.key", "tls_key = \"host.key\"", "password_file = '/run/p'",
        "uuid 123e4567-e89b-42d3-a456-426614174000",
        "commit 13a15a63aabbccddeeff00112233445566778899",
        "cairn_http_requests_total{code=\"200\"} 7",
        "nqn.2014-08.org.nvmexpress:uuid:123e4567-e89b-42d3-a456-426614174000",
        "/var/lib/cairn/some_long_folder_name_with_many_words/Drive1",
        "{\"has_token\": false, \"keys\": 7}"}) {
    EXPECT_EQ(redact(text), text);
  }
}

// Each would take minutes if all that follows were looked at for each part.
TEST(Redact, LooksAtEachPartOnce) {
  for (const char* part : {"a/", "key=/", "-----BEGIN ", "//a", "password", "Bearer "}) {
    std::string text;
    while (text.size() < 1 << 20) text += part;
    EXPECT_FALSE(redact(text).empty());
  }
}

TEST(Redact, TakesAnyBytes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_FALSE(redact(all + all).empty());
  EXPECT_EQ(redact(""), "");
  for (const char* end : {"password", "password=", "password=\"", "password=\"x", "Bearer ",
                          "-----BEGIN ", "-----BEGIN PRIVATE", "//", "//a:b@"}) {
    (void)redact(end);
  }
}

}  // namespace
}  // namespace cairn::server
