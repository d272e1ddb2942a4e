// SPDX-License-Identifier: Apache-2.0
// Negotiation: fixed newstyle, from the greeting to the chosen export.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/nbd/found_exports.h"
#include "door/nbd/options.h"
#include "door/nbd/session.h"
#include "door/nbd/wire_format.h"
#include "env/env.h"
#include "env/stream.h"
#include "stream/receiver.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/context.h"
#include "tls/psk.h"

namespace cairn::door::nbd {

// A stream and what has arrived on it. TLS takes the stream's place in the middle of negotiation.
struct Line {
  std::unique_ptr<env::Stream> stream;
  std::unique_ptr<stream::Receiver> receiver;
};

class Negotiation final : private tls::PskKeeper {
 public:
  // `context` is null where there is no TLS; `lingering` takes what a TLS stream leaves behind.
  Negotiation(env::Env& env, Visit& visit, const NbdOptions& options, const tls::Context* context,
              task::Gate& lingering)
      : env_(env), visit_(visit), options_(options), context_(context), lingering_(lingering) {}

  // kClosed: the client wants nothing. Other errors: it broke the protocol, or vanished.
  task::Task<Result<Agreement>> run(Line& line, task::CancelToken token);
  // What the client was refused last, for our own log; empty: nothing.
  const std::string& refusal() const { return refusal_; }

 private:
  struct Question {
    Option option{};
    std::vector<std::byte> payload;
  };
  enum class Outcome : uint8_t { kGoesOn, kChosen };

  task::Task<Result<void>> greet();
  task::Task<Result<std::optional<Question>>> next_question();
  task::Task<Result<Outcome>> answer(const Question& question);
  task::Task<Result<Outcome>> choose_by_name(const Question& question);
  task::Task<Result<Outcome>> inform(const Question& question);
  task::Task<Result<void>> list(const Question& question);
  task::Task<Result<void>> start_tls(const Question& question);
  task::Task<Result<void>> agree_on_contexts(const Question& question);
  task::Task<Result<void>> reply(Option option, OptionReply type,
                                 std::initializer_list<Bytes> pieces = {});
  task::Task<Result<void>> refuse(Option option, OptionReply type, std::string_view why);
  task::Task<Result<void>> send(Bytes bytes);
  task::Task<Result<tls::Psk>> choose(std::vector<std::string> identities) override;
  uint16_t flags_of(const Export& chosen) const;
  bool must_start_tls() const { return context_ != nullptr && !is_secure_; }

  env::Env& env_;
  Visit& visit_;
  const NbdOptions& options_;
  const tls::Context* context_;
  task::Gate& lingering_;
  Line* line_ = nullptr;
  task::CancelToken token_;
  bool no_zeroes_ = false;
  bool is_fixed_ = false;
  bool is_secure_ = false;
  Agreement agreement_;
  std::string refusal_;
  std::optional<std::string> context_name_;  // the export whose base:allocation was chosen
};

}  // namespace cairn::door::nbd
