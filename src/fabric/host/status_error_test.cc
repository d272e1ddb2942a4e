// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/status_error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace cairn::fabric {
namespace {

using nvme::Status;
using nvme::StatusCode;
using nvme::StatusContext;

TEST(StatusError, SaysWhatToDoNext) {
  const std::pair<StatusCode, Errc> cases[] = {
      {StatusCode::kCompareFailure, Errc::kMismatch},
      {StatusCode::kCapacityExceeded, Errc::kNoSpace},
      {StatusCode::kReservationConflict, Errc::kDenied},
      {StatusCode::kAbortedPreempt, Errc::kDenied},
      {StatusCode::kAccessDenied, Errc::kDenied},
      {StatusCode::kNamespaceWriteProtected, Errc::kDenied},
      {StatusCode::kLbaOutOfRange, Errc::kInvalid},
      {StatusCode::kInvalidField, Errc::kInvalid},
      {StatusCode::kInvalidOpcode, Errc::kUnsupported},
      {StatusCode::kInvalidNamespaceOrFormat, Errc::kNotFound},
      {StatusCode::kUnrecoveredReadError, Errc::kIo},
      {StatusCode::kWriteFault, Errc::kIo},
      {StatusCode::kGuardCheckError, Errc::kCorrupt},
      {StatusCode::kAnaInaccessible, Errc::kUnreachable},
      {StatusCode::kReadOnlyRange, Errc::kDenied},
  };
  for (const auto& [code, expected] : cases) {
    EXPECT_EQ(error_of(code).code(), expected) << nvme::name(code);
    EXPECT_EQ(error_of(code).detail(), static_cast<int32_t>(code));
  }
  EXPECT_EQ(error_of(StatusCode::kConnectInvalidHost, StatusContext::kFabrics).code(),
            Errc::kDenied);
  EXPECT_EQ(error_of(StatusCode::kConnectControllerBusy, StatusContext::kFabrics).code(),
            Errc::kLimit);
}

TEST(StatusError, EveryStatusHasAnError) {
  for (uint32_t field = 2; field < 0x10000; field += 2) {
    const Status status = Status::from_wire(static_cast<uint16_t>(field));
    if (status.ok()) continue;
    const Error error = error_of(status);
    EXPECT_NE(name(error.code()), "unknown") << field;
    EXPECT_FALSE(std::string_view(error.what()).empty()) << field;
    EXPECT_EQ(error.detail(), static_cast<int32_t>(status.code())) << field;
  }
}

TEST(StatusError, DoNotRetryEndsEveryRetry) {
  for (const StatusCode code : {StatusCode::kAnaTransition, StatusCode::kAnaPersistentLoss,
                                StatusCode::kHostPathingError, StatusCode::kAnaInaccessible}) {
    EXPECT_TRUE(is_path_status(code));
    EXPECT_FALSE(is_path_status(Status(code).with_do_not_retry()));
  }
  EXPECT_TRUE(is_transient_status(StatusCode::kNamespaceNotReady));
  EXPECT_FALSE(is_transient_status(Status(StatusCode::kNamespaceNotReady).with_do_not_retry()));
  EXPECT_FALSE(is_transient_status(StatusCode::kUnrecoveredReadError));
  EXPECT_FALSE(is_transient_status(StatusCode::kAbortedPreempt)) << "it was fenced off";
}

}  // namespace
}  // namespace cairn::fabric
