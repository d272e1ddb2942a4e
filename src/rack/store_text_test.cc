// SPDX-License-Identifier: Apache-2.0
#include "rack/store_text.h"

#include <gtest/gtest.h>

namespace cairn::rack {
namespace {

TEST(StoreText, SaysWhatToDoWhenNobodyAnswers) {
  EXPECT_EQ(store_text(Error(Errc::kTimedOut, "no server was found in time")),
            "the metadata store does not answer: no server was found in time: start it ('cairn "
            "rack serve', or etcd), or name another with --rack");
}

TEST(StoreText, ARefusalIsNoSilence) {
  EXPECT_EQ(store_text(Error(Errc::kDenied, "the role of this client is reader")),
            "the role of this client is reader");
  EXPECT_EQ(store_text(Error(Errc::kUnsupported, "the server demands TLS")),
            "the server demands TLS");
}

}  // namespace
}  // namespace cairn::rack
