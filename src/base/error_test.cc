// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

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

TEST(Error, EveryCodeHasAName) {
  for (int code = 1; code <= static_cast<int>(Errc::kCancelled); ++code) {
    EXPECT_NE(name(static_cast<Errc>(code)), "unknown") << code;
  }
}

}  // namespace
}  // namespace cairn
