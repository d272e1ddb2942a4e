// SPDX-License-Identifier: Apache-2.0
// TcpCommand: one command of a connection, from its capsule to its response.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/buffer.h"
#include "base/list.h"
#include "nvme/command.h"
#include "nvme/data_pointer.h"
#include "nvme/pdu.h"
#include "task/sync.h"

namespace cairn::fabric {

class TargetConnection;
struct OutTag;
struct FreeTag;

// A slot of the connection's table; its index is the TTAG of its R2Ts. Between commands it is free.
class TcpCommand final : public nvme::Command, public ListHook<OutTag>, public ListHook<FreeTag> {
 public:
  // The life of a slot.
  enum class State : uint8_t {
    kFree,
    kRunning,     // the engine has it
    kAsking,      // and waits for data: an R2T is to be sent, or being answered
    kResponding,  // complete: its response is to be sent, or being sent
  };

  task::Task<Result<nvme::Pieces>> to_host(size_t bytes) override;
  task::Task<Result<nvme::Pieces>> from_host(size_t bytes) override;
  void complete(const nvme::Cqe& cqe) override;
  task::CancelToken cancel_token() override { return cancel->token(); }

  TargetConnection* connection = nullptr;
  uint16_t index = 0;
  State state = State::kFree;

  nvme::DataPointer pointer;
  Buffer data;                    // what came from the host, or goes there
  MutableBytes piece;             // of `data`, in use
  bool has_output = false;        // `piece` goes to the host on success
  bool data_corrupt = false;      // a data digest did not match
  bool owns_cid = false;          // false for a duplicate, which is only refused
  bool sending_response = false;  // of what is being sent: else an R2T
  nvme::TransferWindow window;    // of the R2T being answered
  task::Event arrived;            // the R2T was answered in full
  std::optional<task::CancelSource> cancel;

  nvme::Cqe cqe;
  // Headers as they are sent: an R2T or C2HData, its data digest, the response.
  std::array<std::byte, 32> prefix;
  std::array<std::byte, 32> response;
  std::array<std::byte, nvme::kDigestSize> digest;
  uint32_t prefix_size = 0;
  uint32_t response_size = 0;
};

}  // namespace cairn::fabric
