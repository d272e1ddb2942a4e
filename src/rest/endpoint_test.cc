// SPDX-License-Identifier: Apache-2.0
#include "rest/endpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace cairn::rest {
namespace {

TEST(RestPlace, IsReadAsItIsWritten) {
  const auto place = Endpoint::parse("http://10.0.0.7:8080/a/b%20c/?size=1G&object=128K&block=512");
  ASSERT_TRUE(place) << place.error();
  EXPECT_EQ(place->host, "10.0.0.7:8080");
  EXPECT_EQ(place->address, env::Address::ip4(10, 0, 0, 7, 8080));
  EXPECT_EQ(place->path, "/a/b%20c");
  EXPECT_EQ(place->size, 1_GiB);
  EXPECT_EQ(place->object_size, 128u << 10);
  EXPECT_EQ(place->block_size, 512u);
  EXPECT_EQ(place->connections, 8u);
}

TEST(RestPlace, HasPort80AndStandardsUnlessGiven) {
  const auto place = Endpoint::parse("http://localhost/v");
  ASSERT_TRUE(place) << place.error();
  EXPECT_EQ(place->address, env::Address::loopback(80));
  EXPECT_FALSE(place->size);
  const auto other =
      Endpoint::parse("http://[::1]/v?timeout_ms=5&retries=0&check_ms=0&connections=1");
  ASSERT_TRUE(other) << other.error();
  EXPECT_EQ(other->address.text(), "[::1]:80");
  EXPECT_EQ(other->timeout, 5_ms);
  EXPECT_EQ(other->retries, 0u);
  EXPECT_EQ(other->check, 0_s);
}

TEST(RestPlace, LeavesNamesToAResolver) {
  const auto place = Endpoint::parse("http://store.example:81/v");
  ASSERT_TRUE(place) << place.error();
  EXPECT_EQ(place->name, "store.example");
  EXPECT_EQ(place->port, 81);
}

TEST(RestPlace, IsTheSameWithTheAddressThatWasFound) {
  for (const char* text : {"http://store.example:81/v", "http://store.example/v?size=1G",
                           "http://store.example/v?host=other.example"}) {
    auto place = Endpoint::parse(text);
    ASSERT_TRUE(place) << place.error();
    place->address = env::Address::ip4(10, 0, 0, 9, place->port);
    const std::string whole = text_with_address(text, *place);
    const auto again = Endpoint::parse(whole);
    ASSERT_TRUE(again) << whole << ": " << again.error();
    EXPECT_EQ(again->name, "") << whole;
    EXPECT_EQ(again->address, place->address) << whole;
    EXPECT_EQ(again->host, place->host) << whole;
    EXPECT_EQ(again->path, place->path) << whole;
    EXPECT_EQ(again->size, place->size) << whole;
  }
  EXPECT_EQ(text_with_address("http://10.0.0.1/v", *Endpoint::parse("http://10.0.0.1/v")),
            "http://10.0.0.1/v");
}

TEST(RestPlace, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"https://a/b", "does not begin with http://"},
      {"http://10.0.0.1", "folder of the objects is missing"},
      {"http://10.0.0.1//", "folder of the objects is missing"},
      {"http:///v", "neither an address nor a name"},
      {"http://a_b/v", "neither an address nor a name"},
      {"http://a:0/v", "is no port"},
      {"http://a:99999/v", "is no port"},
      {"http://a:8x/v", "is no port"},
      {"http://[::1/v", "']' is missing"},
      {"http://a/b\r\nc", "cannot have"},
      {"http://a/b#c", "cannot have"},
      {"http://a/b?colour=red", "'colour' is no option"},
      {"http://a/b?size", "'size' is wrong"},
      {"http://a/b?size=1G&&", "'' is no option"},
      {"http://a/b?object=3000", "a power of two"},
      {"http://a/b?object=2M", "512 to 1048576"},
      {"http://a/b?block=256", "512 to 65536"},
      {"http://a/b?connections=0", "1 to 64"},
      {"http://a/b?host=", "host is a name"},
      {"http://a/b?host=x\r\ny", "host is a name"},
  };
  for (const auto& [text, message] : cases) {
    const auto place = Endpoint::parse(text);
    ASSERT_FALSE(place) << text;
    EXPECT_NE(place.error().find(message), std::string::npos) << text << ": " << place.error();
  }
}

}  // namespace
}  // namespace cairn::rest
