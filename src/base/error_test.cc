// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string_view>

namespace cairn {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0) return fail(Errc::kInvalid, "odd number", value);
  return value / 2;
}

TEST(Error, CarriesCodeDetailAndPurpose) {
  EXPECT_EQ(*half_of(8), 4);
  const Result<int> odd = half_of(7);
  ASSERT_FALSE(odd);
  EXPECT_TRUE(odd.error() == Errc::kInvalid);
  EXPECT_EQ(odd.error().detail(), 7);
  EXPECT_EQ(odd.error().text(), "odd number: invalid (7)");
}

TEST(Error, TranslatesErrnosToWhatTheCallerCanDo) {
  EXPECT_TRUE(Error::from_errno(ENOSPC, "x") == Errc::kNoSpace);
  EXPECT_TRUE(Error::from_errno(ECONNRESET, "x") == Errc::kReset);
  EXPECT_TRUE(Error::from_errno(ECONNREFUSED, "x") == Errc::kUnreachable);
  EXPECT_TRUE(Error::from_errno(EADDRINUSE, "x") == Errc::kExists);
  EXPECT_TRUE(Error::from_errno(EIO, "x") == Errc::kIo);
  EXPECT_TRUE(Error::from_errno(ECANCELED, "x") == Errc::kCancelled);
  EXPECT_EQ(Error::from_errno(ENOSPC, "write drive").text(),
            "write drive: no_space (No space left on device)");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  int code = 1;
  for (; name(static_cast<Errc>(code)) != "unknown"; ++code) {
    EXPECT_TRUE(names.insert(name(static_cast<Errc>(code))).second) << code;
  }
  EXPECT_EQ(code, static_cast<int>(Errc::kCancelled) + 1);
}

}  // namespace
}  // namespace cairn
