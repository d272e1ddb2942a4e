// SPDX-License-Identifier: Apache-2.0
// Outbox: the replies of a connection on their way out, many in one write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/operation.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::nbd {

// First come, first served; what is ready together leaves together. A reply in several parts is not
// interrupted by others. After an error everything fails with it.
class Outbox {
 public:
  // How a message stands to its neighbours: kFirst opens a reply that only kMiddle and kLast
  // continue.
  enum class Part : uint8_t { kWhole, kFirst, kMiddle, kLast };

  // `stall` is how long the peer may take for one write, a few hundred KiB at most.
  Outbox(env::Env& env, env::Stream& stream, Duration stall);

  static constexpr size_t kPiecesMax = 4;

  class Send final : public task::Operation<void>, public ListHook<Outbox> {
   public:
    Send(Outbox& outbox, std::initializer_list<Bytes> pieces, Part part);

   private:
    friend class Outbox;
    void start() override;
    void cancel() override {}
    Outbox& outbox_;
    Part part_;
    size_t count_ = 0;
    std::array<Bytes, kPiecesMax> pieces_;
  };

  // Done when the stream has accepted the bytes, which are lent until then.
  Send send(std::initializer_list<Bytes> pieces, Part part = Part::kWhole) {
    return {*this, pieces, part};
  }

  // Sends until close() and all was sent.
  task::Task<void> run();
  void close();

 private:
  void add(Send& message);
  // What leaves next, oldest first.
  void gather(List<Send, Outbox>& batch);
  void take(Send& message, List<Send, Outbox>& batch);

  env::Env& env_;
  env::Stream& stream_;
  Duration stall_;
  List<Send, Outbox> waiting_;
  List<Send, Outbox> continuing_;  // of the reply that is under way
  std::vector<Bytes> pieces_;
  size_t gathered_ = 0;  // bytes
  task::Event changed_;
  std::optional<Error> failure_;
  bool is_open_reply_ = false;
  bool closed_ = false;
};

}  // namespace cairn::door::nbd
