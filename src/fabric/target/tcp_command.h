// SPDX-License-Identifier: Apache-2.0
// TcpCommand: one command of a connection, from its capsule to its response.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/buffer.h"
#include "base/list.h"
#include "fabric/target/data_share.h"
#include "nvme/controller/command.h"
#include "nvme/format/data_pointer.h"
#include "nvme/format/pdu.h"
#include "task/sync.h"

namespace cairn::fabric {

class TargetConnection;
struct OutTag;
struct FreeTag;

// A slot of the connection's table. Between commands it is free.
class TcpCommand final : public nvme::Command, public ListHook<OutTag>, public ListHook<FreeTag> {
 public:
  // The life of a slot.
  enum class State : uint8_t {
    kFree,
    kRunning,     // the engine has it
    kAsking,      // and waits for data: an R2T is to be sent, or being answered
    kResponding,  // complete: its response is to be sent, or being sent
  };

  // A header with its digest, padded as far as a host can ask for.
  static constexpr size_t kPrefixMax = nvme::alignment_bytes(nvme::kDataAlignmentMax);

  task::Task<Result<nvme::Pieces>> to_host(size_t bytes) override;
  task::Task<Result<nvme::Pieces>> from_host(size_t bytes) override;
  task::Task<Result<void>> prepare_pair(nvme::Command& second) override;
  task::Task<Result<MutableBytes>> scratch(size_t bytes) override;
  std::optional<nvme::Pieces> here_from_host(size_t bytes) override;
  bool borrow(Bytes bytes, task::Gate& keeper) override;
  void complete(const nvme::Cqe& cqe) override;
  task::CancelToken cancel_token() override { return cancel->token(); }

  // Whether the engine has it.
  bool is_running() const { return state == State::kRunning || state == State::kAsking; }
  // Gives back the memory of its data.
  void drop_data();
  // What goes to the host on success.
  Bytes output() const { return loan.empty() ? Bytes(piece) : loan; }
  // The end of what was borrowed, from `offset` on, is needed for longer: it is copied and lies at
  // the same offset of `piece`.
  void keep_loan(size_t offset);

  TargetConnection* connection = nullptr;
  TcpCommand* partner = nullptr;  // the other half of a fused pair, while both run
  // Of its R2Ts; modulo the most slots there can be, the slot's place. A command that ends before
  // its data came leaves its tag to the data that is owed (OwedData), and the slot takes the next.
  uint16_t ttag = 0;
  State state = State::kFree;
  bool preempted = false;         // abort_namespace() waits for its end
  bool has_output = false;        // output() goes to the host on success
  bool data_corrupt = false;      // a data digest did not match
  bool owns_cid = false;          // false for a duplicate, which is only refused
  bool superseded = false;        // its id is another command's now: it is never answered
  bool sending_response = false;  // of what is being sent: else an R2T

  nvme::DataPointer pointer;
  DataShare::Part share;         // of what its connection may have
  uint32_t loan_piece = 0;       // which of the pieces being sent `loan` is, while it is
  Buffer data;                   // what came from the host, or goes there
  MutableBytes piece;            // of `data`, in use
  Bytes loan;                    // where the output lies instead; `piece` has room for it
  task::Gate* lender = nullptr;  // entered while there is a loan
  nvme::TransferWindow window;   // of the R2T being answered
  task::Event arrived;           // the R2T was answered in full
  std::optional<task::CancelSource> cancel;

  nvme::Cqe cqe;
  // Headers as they are sent: an R2T or C2HData, its data digest, the response.
  std::array<std::byte, kPrefixMax> prefix;
  std::array<std::byte, 32> response;
  std::array<std::byte, nvme::kDigestSize> digest;
  uint16_t prefix_size = 0;
  uint16_t response_size = 0;

 private:
  // Waits for `share` of this much. kLimit: there is none for too long.
  task::Task<Result<void>> wait_for_share(size_t bytes);
  // Waits for `data` of its own.
  task::Task<Result<void>> wait_for_data(size_t bytes);
  void end_loan();
  // All of the data, by one R2T.
  task::Task<Result<void>> ask_for_all();
};

}  // namespace cairn::fabric
