// SPDX-License-Identifier: Apache-2.0
#include "env/address.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/rng.h"

namespace cairn::env {
namespace {

TEST(Address, ReadsAndPrintsItsThreeForms) {
  for (const char* text : {"127.0.0.1:4420", "0.0.0.0:0", "255.255.255.255:65535", "[::]:8009",
                           "[::1]:4420", "[fe80::1:2]:80", "[2001:db8::8:800:200c:417a]:1",
                           "[1:2:3:4:5:6:7:8]:9", "unix:/run/cairn.sock"}) {
    const Result<Address> address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
}

TEST(Address, PrintsCanonically) {
  const std::pair<const char*, const char*> cases[] = {
      {"[0:0:0:0:0:0:0:1]:1", "[::1]:1"},
      {"[1:0:0:2:0:0:0:3]:1", "[1:0:0:2::3]:1"},
      {"[::ffff:10.1.2.3]:1", "[::ffff:a01:203]:1"},
      {"[FE80::A]:1", "[fe80::a]:1"},
  };
  for (const auto& [in, out] : cases) EXPECT_EQ(Address::parse(in).value().text(), out);
}

TEST(Address, RefusesWhatItCannotReach) {
  for (const char* text : {"",
                           ":",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:1x",
                           "1.2.3:1",
                           "1.2.3.4.5:1",
                           "256.1.1.1:1",
                           "1..2.3:1",
                           "01.2.3.4:1",
                           "localhost:4420",
                           "::1:4420",
                           "[::1]",
                           "[::1",
                           "[1::2::3]:1",
                           "[1:2:3:4:5:6:7]:1",
                           "[1:2:3:4:5:6:7:8:9]:1",
                           "[12345::]:1",
                           "[g::]:1",
                           "[:::]:1",
                           "[1:]:1",
                           "[::1.2.3]:1",
                           "[::1.2.3.4:5]:1",
                           "unix:"}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
  EXPECT_FALSE(Address::parse("unix:" + std::string(108, 'x')));
}

TEST(Address, RandomIpsSurviveTheRoundTrip) {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    Address address{.family = Address::Family::kIp6, .port = static_cast<uint16_t>(rng.next())};
    for (uint8_t& byte : address.ip)
      byte = rng.bernoulli(0.5) ? 0 : static_cast<uint8_t>(rng.next());
    EXPECT_EQ(Address::parse(address.text()).value(), address) << address.text();
  }
}

}  // namespace
}  // namespace cairn::env
