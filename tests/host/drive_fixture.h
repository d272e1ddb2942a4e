// SPDX-License-Identifier: Apache-2.0
// For tests of the drive over fake targets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "host/fixture.h"
#include "task/task.h"

namespace cairn::host_tests {

using drive::Request;
using fabric::RemoteDrive;
using fabric::Uri;
using nvme::IoOpcode;
using nvme::Sqe;
using nvme::StatusCode;
using task::Task;
using Kind = drive::Request::Kind;

inline constexpr uint32_t kBlock = FakeMedium::kBlock;

class DriveTest : public HostTest {
 public:
  using Scene = HostScene<DriveTest>;
  Uri uri() {
    Uri uri{.paths = {address()}, .nqn = std::string(kNqn), .nsid = 1, .options = options};
    if (has_other) uri.paths.push_back(other_address());
    return uri;
  }
  Bytes stored(uint64_t lba, size_t blocks) {
    return Bytes(target.medium->bytes).subspan(lba * kBlock, blocks * kBlock);
  }
  void run(Body<DriveTest> body) { on_host(*this, body); }
  MutableBytes lent;  // of a request that runs, for hooks
};

// Hooks see I/O commands only.
template <class F>
auto for_io(F hook) {
  return [hook](FakeConnection& connection, const Sqe& sqe) mutable {
    return connection.is_admin() || sqe.is_fabrics() ? Verdict::kServe : hook(connection, sqe);
  };
}

// Opens the drive of a test; an error is the test's failure.
inline Task<std::unique_ptr<RemoteDrive>> open_drive(env::Env& env, DriveTest& test) {
  Result<std::unique_ptr<RemoteDrive>> drive = co_await RemoteDrive::open(env, test.uri());
  EXPECT_OK(drive);
  co_return drive ? std::move(*drive) : nullptr;
}

inline Task<Result<void>> write_at(RemoteDrive& drive, uint64_t lba, Bytes data) {
  const Result<void> written = co_await drive.write(Lba(lba), data);
  co_return written;
}
inline Task<Result<void>> read_at(RemoteDrive& drive, uint64_t lba, MutableBytes data) {
  const Result<void> read = co_await drive.read(Lba(lba), data);
  co_return read;
}

}  // namespace cairn::host_tests
