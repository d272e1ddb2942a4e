// SPDX-License-Identifier: Apache-2.0
// TlsStream: a Stream that is encrypted on its way through another one. Works in every world,
// because all it does it does through that other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "tls/context.h"
#include "tls/engine.h"
#include "tls/psk.h"

namespace cairn::tls {

// From the first byte to the last, unless the token is faster.
inline constexpr Duration kHandshakeTimeout = 10_s;
// How long the last words (close_notify, an alert) may take to leave, and a peer that was refused
// to read them.
inline constexpr Duration kGoodbye = 1_s;
// Chunks of plain text that a reader may hold at once; then receive() waits.
inline constexpr size_t kChunksMax = 8;

// The contract is that of every Stream (docs/env.md), with three additions: shake_hands() comes
// first; an end without close_notify is kReset, for somebody may have cut the stream short; and a
// stream that goes leaves its close_notify behind in `lingering`, whose owner closes that gate
// afterwards. Memory: kBufferSize each way, touched as used, and what OpenSSL keeps.
class TlsStream final : public env::Stream, public env::Chunk::Owner {
 public:
  // A client's end, with its key.
  TlsStream(env::Env& env, std::unique_ptr<env::Stream> inner, const Context& context, Psk psk,
            task::Gate& lingering);
  // A client's end, towards a server that shows a certificate for this name.
  TlsStream(env::Env& env, std::unique_ptr<env::Stream> inner, const Context& context,
            const ServerName& server, task::Gate& lingering);
  // A server's end. The keeper is asked during the handshake.
  TlsStream(env::Env& env, std::unique_ptr<env::Stream> inner, const Context& context,
            PskKeeper& keeper, task::Gate& lingering);
  ~TlsStream() override;

  // Once, before anything else; after an error the stream can only be destroyed. kDenied: a key is
  // unknown or wrong, or a certificate not good enough, which a client may also hear when it reads
  // first; kUnsupported: the peer speaks no TLS, or no TLS 1.3; kTimedOut, kCancelled,
  // kReset. What the keeper said, when it refused.
  task::Task<Result<void>> shake_hands(Duration timeout = kHandshakeTimeout,
                                       task::CancelToken token = {});
  const HandshakeReport& report() const;
  // Under which both ends know the key that was used.
  const std::string& identity() const;

  Result<void> finish() override;
  void reset() override;
  env::Address local() const override;
  env::Address peer() const override;
  void take_back(uint64_t id) override;

 private:
  // What outlives the stream while its last words are under way.
  struct Link;
  // A direction's operation under way, and how to stop it.
  struct Way {
    bool busy = false;
    std::optional<task::CancelSource> cancel;
    task::Task<void> task;
    task::CancelToken begin() {
      busy = true;
      cancel.emplace();
      return cancel->token();
    }
    bool is_cancelled() const { return cancel->requested(); }
  };

  void start_read(env::ReadOp& op) override;
  void cancel_read(env::ReadOp& op) override;
  void start_write(env::WriteOp& op) override;
  void cancel_write(env::WriteOp& op) override;
  void start_receive(env::ReceiveOp& op) override;
  void cancel_receive(env::ReceiveOp& op) override;

  task::Task<Result<void>> shake_hands_until(task::CancelToken token);
  task::Task<void> refuse_peer(task::CancelToken token);
  // What is here already; none: the peer has to send more.
  std::optional<Result<size_t>> read_now(std::span<const MutableBytes> into);
  task::Task<Result<size_t>> read_some(std::span<const MutableBytes> into, task::CancelToken token);
  task::Task<void> read_for(env::ReadOp& op, task::CancelToken token);
  task::Task<void> receive_for(env::ReceiveOp& op, task::CancelToken token);
  task::Task<void> write_for(env::WriteOp& op, task::CancelToken token);
  task::Task<Result<void>> write_pieces(std::span<const Bytes> pieces, task::CancelToken token);
  static task::Task<Result<void>> send_output(Link& link, task::CancelToken token);
  static task::Task<void> say_goodbye(std::shared_ptr<Link> link, bool finishes);
  Result<env::Chunk> chunk_of(uint64_t id, Result<size_t> read);
  std::optional<uint64_t> free_chunk();
  Error write_failure() const;

  env::Env& env_;
  std::shared_ptr<Link> link_;
  PskKeeper* keeper_ = nullptr;
  task::Gate& lingering_;
  bool is_open_ = false;
  bool is_finished_ = false;
  bool was_reset_ = false;
  Way reading_;
  Way writing_;
  std::optional<Error> read_error_;        // of the stream below
  std::optional<Error> write_error_;       // likewise, or a write was cut short
  std::unique_ptr<std::byte[]> gathered_;  // small pieces, to fill a record
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::vector<uint64_t> free_chunks_;
  task::Event chunk_came_back_;
};

}  // namespace cairn::tls
