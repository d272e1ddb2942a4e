// SPDX-License-Identifier: Apache-2.0
#include "base/error_text.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn {
namespace {

TEST(ErrorText, HasNoCode) {
  EXPECT_EQ(error_text(Error(Errc::kUnsupported, "this drive keeps its size")),
            "this drive keeps its size");
  EXPECT_EQ(error_text(Error::from_errno(ENOSPC, "write a file")),
            "write a file (No space left on device)");
  EXPECT_EQ(error_text(Error(Errc::kCorrupt, "a record of another version", 7)),
            "a record of another version (7)");
}

}  // namespace
}  // namespace cairn
