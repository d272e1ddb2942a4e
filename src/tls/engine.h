// SPDX-License-Identifier: Apache-2.0
// Engine: TLS as a machine between two bounded buffers, without I/O, time or waiting. Bytes from
// the peer go in, bytes for the peer come out, and between them is plain text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "tls/context.h"
#include "tls/psk.h"

namespace cairn::tls {

inline constexpr size_t kPlainMax = 16_KiB;  // plain text of one record
// Encrypted bytes that wait to be understood, or to be sent: eight full records and a little more.
// Only what is used is ever touched.
inline constexpr size_t kRecordRoom = kPlainMax + 256;
inline constexpr size_t kBufferSize = 8 * kRecordRoom + 4096;

// How far a handshake came, for those who ask why it did not come further.
struct HandshakeReport {
  bool heard_anything = false;
  bool heard_tls = false;             // what came first was a TLS record
  bool heard_server_hello = false;    // the server agreed to a version, a cipher and a key exchange
  bool showed_certificate = false;    // the server ignored our key and went on without
  uint8_t alert = 0;                  // that the peer sent; 0: none
  std::string cipher;                 // when it is done
  std::array<std::byte, 16> first{};  // bytes that came first
  size_t first_size = 0;
};

// As whom a server must show itself: a name, or an IP address, that its certificate is for.
struct ServerName {
  std::string text;
};

class Engine {
 public:
  enum class Step : uint8_t {
    kDone,
    kWantsInput,   // nothing more happens until bytes have come
    kWantsChoice,  // a server's: offered() is to be answered by choose()
    kEnd,          // the peer has sent close_notify; nothing more comes
    kFailed,       // see failure(); what is left of output() tells the peer
  };

  // A client with its key, one that trusts certificates, or a server. The context is made for it.
  Engine(const Context& context, Psk psk);
  Engine(const Context& context, const ServerName& server);
  explicit Engine(const Context& context);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Before the handshake: certificates are judged as of then.
  void judge_at(WallTime now);

  // Where bytes from the peer go, at least one; then how many they were.
  MutableBytes input_room();
  void input_came(size_t count);
  // Nothing more comes from the peer.
  void input_ended() { input_ended_ = true; }
  // What is to be sent; then how much of it was.
  Bytes output();
  void output_left(size_t count);
  // Whether a whole record would fit behind it.
  bool has_room_for_record();

  // As far as it goes: kDone, kWantsInput, kWantsChoice, kFailed.
  Step shake_hands();
  // After kWantsChoice: what the client offers, and the answer to it.
  const std::vector<std::string>& offered() const { return offered_; }
  void choose(Result<Psk> choice);
  // The key that was agreed upon.
  const std::string& identity() const { return psk_.identity; }
  const HandshakeReport& report() const { return report_; }

  // Plain text, 1 byte to all of `into`: kDone, with `count`. Or kWantsInput, kEnd, kFailed.
  Step read(MutableBytes into, size_t& count);
  // Encrypts all of `from`, kPlainMax at most, for which there must be room. False: failure().
  bool write(Bytes from);
  // The last thing this side says.
  void close_notify();

  // Why it can no longer be used, for this and all later calls.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  struct Callbacks;
  struct Handle;

  void attach(const Context& context);
  Step fail_with(const Error& error);
  Step failed_certificate();
  Step failed_handshake();
  Step failed_read();
  bool looks_like_tls();

  std::unique_ptr<Handle> handle_;
  Role role_;
  bool has_certificate_ = false;  // instead of a key
  Psk psk_;
  bool has_choice_ = false;
  std::optional<Error> refusal_;
  std::vector<std::string> offered_;
  HandshakeReport report_;
  bool input_ended_ = false;
  std::optional<Error> failure_;
};

}  // namespace cairn::tls
