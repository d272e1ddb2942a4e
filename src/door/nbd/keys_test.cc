// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/keys.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::door::nbd {
namespace {

const std::string kKey = "00112233445566778899aabbccddeeff";

TEST(NbdKeys, AreFoundByName) {
  const Result<NbdKeys> keys =
      NbdKeys::parse("# clients\nalice:" + kKey + "\n\nbob:b:" + kKey + kKey + " \r\n");
  ASSERT_TRUE(keys.has_value());
  EXPECT_EQ(keys->names(), (std::vector<std::string>{"alice", "bob:b"}));
  const Result<tls::Psk> psk = keys->choose({"carol", "alice"});
  ASSERT_TRUE(psk.has_value());
  EXPECT_EQ(psk->identity, "alice");
  EXPECT_EQ(psk->key.size(), 16u);
  EXPECT_EQ(psk->key.bytes()[15], std::byte{0xff});
  EXPECT_EQ(keys->choose({"carol"}).error(), Errc::kDenied);
}

TEST(NbdKeys, AMistakeIsToldWithItsLine) {
  for (const std::string& wrong :
       {std::string("alice"), std::string(":") + kKey, std::string("alice:0011"),
        "alice:" + kKey + "0", "alice:" + kKey.substr(2) + "zz",
        "alice:" + std::string(130, '0')}) {
    const Result<NbdKeys> keys = NbdKeys::parse("ok:" + kKey + "\n" + wrong);
    ASSERT_FALSE(keys.has_value()) << wrong;
    EXPECT_EQ(keys.error().detail(), 2) << wrong;
  }
  EXPECT_FALSE(NbdKeys::parse("a:" + kKey + "\na:" + kKey).has_value());
  EXPECT_FALSE(NbdKeys::parse("\n# nobody\n").has_value());
}

}  // namespace
}  // namespace cairn::door::nbd
