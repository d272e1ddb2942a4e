// SPDX-License-Identifier: Apache-2.0
// For tests of one association: a session's user, and its commands as calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/host/session.h"
#include "host/fixture.h"
#include "nvme/format/io_format.h"
#include "task/task.h"

namespace cairn::host_tests {

using fabric::CommandOp;
using fabric::HostSession;
using nvme::Cqe;
using nvme::IoOpcode;
using nvme::Sqe;
using nvme::StatusCode;
using task::Task;

class SessionTest : public HostTest, public HostSession::User {
 public:
  using Scene = HostScene<SessionTest>;
  void session_lost(const Error& why) override { lost = why; }
  void session_event(const nvme::AsynchronousEvent& event) override { events.push_back(event); }

  HostSession::Options session_options() {
    return {.address = address(), .nqn = std::string(kNqn), .host = options};
  }
  void run(Body<SessionTest> body) { on_host(*this, body); }

  std::optional<Error> lost;
  std::vector<nvme::AsynchronousEvent> events;
};

inline Sqe block_command(IoOpcode opcode, uint64_t lba, uint32_t blocks) {
  Sqe sqe = Sqe::make(opcode, 1);
  nvme::BlockFields{.start = Lba(lba), .blocks = blocks}.encode(sqe);
  return sqe;
}

inline Task<Result<void>> write_blocks(HostSession& session, uint64_t lba, MutableBytes data,
                                       task::CancelToken token = {}) {
  const auto blocks = static_cast<uint32_t>(data.size() / FakeMedium::kBlock);
  const Result<Cqe> done =
      co_await session.io(block_command(IoOpcode::kWrite, lba, blocks), data, token);
  if (!done) co_return fail(done.error());
  EXPECT_TRUE(done->get_status().ok());
  co_return Result<void>{};
}

inline Task<Result<void>> read_blocks(HostSession& session, uint64_t lba, MutableBytes data,
                                      task::CancelToken token = {}) {
  const auto blocks = static_cast<uint32_t>(data.size() / FakeMedium::kBlock);
  CommandOp read = session.io(block_command(IoOpcode::kRead, lba, blocks), data, token);
  const Result<Cqe> done = co_await read;
  if (!done) co_return fail(done.error());
  EXPECT_TRUE(done->get_status().ok());
  EXPECT_EQ(read.moved(), data.size());
  co_return Result<void>{};
}

}  // namespace cairn::host_tests
