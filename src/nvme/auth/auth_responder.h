// SPDX-License-Identifier: Apache-2.0
// AuthResponder: the controller's side of authentication on one queue, message by message. Knows
// neither time nor transport.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "crypto/dh.h"
#include "crypto/hash.h"
#include "nvme/auth/auth_draw.h"
#include "nvme/auth/auth_message.h"
#include "nvme/auth/auth_policy.h"

namespace cairn::nvme {

class AuthResponder {
 public:
  // The life of a transaction: what comes next.
  enum class Step : uint8_t {
    kIdle,  // a Negotiate may come
    kGiveChallenge,
    kTakeReply,
    kGiveSuccess1,
    kTakeSuccess2,
    kGiveFailure1,
    kFailed,  // the queue is of no use any more
  };

  // `host_nqn` is named by the policy, which the responder keeps.
  AuthResponder(std::shared_ptr<const AuthPolicy> policy, std::string host_nqn,
                std::string subsystem_nqn);

  // Another policy for transactions that begin later; it names the host too.
  void set_policy(std::shared_ptr<const AuthPolicy> policy) { policy_ = std::move(policy); }

  Step step() const { return step_; }
  // A transaction has begun and not ended.
  bool is_under_way() const { return step_ != Step::kIdle && step_ != Step::kFailed; }

  // A message that the host sends. `draw` is used when it begins a transaction. What is wrong with
  // it is told by the next give().
  void take(Bytes message, const AuthDraw& draw);
  // The message that the host gets; the bytes used. 0: nothing is to be got now, or `room` is too
  // small.
  size_t give(MutableBytes room);

  // Since the last call: the transaction has ended in success.
  bool take_success() { return std::exchange(succeeded_, false); }
  // Why it failed, for our log only: the host is told less.
  const char* why_failed() const { return why_; }

 private:
  const AuthKeys& keys() const { return policy_->hosts.find(host_nqn_)->second; }
  void take_negotiate(Bytes message, const AuthDraw& draw);
  void take_reply(Bytes message);
  void take_success2(Bytes message);
  void refuse(AuthFailure failure, const char* why);
  size_t give_challenge(MutableBytes room);
  size_t give_success1(MutableBytes room);

  std::shared_ptr<const AuthPolicy> policy_;
  std::string host_nqn_;
  std::string subsystem_nqn_;
  Step step_ = Step::kIdle;
  AuthFailure failure_{};
  const char* why_ = "";
  bool succeeded_ = false;

  // Of the transaction under way.
  uint16_t transaction_ = 0;
  AuthHash hash_{};
  AuthGroup group_{};
  std::optional<AuthDraw> draw_;
  crypto::Digest response_;  // to the host's challenge; empty: it has sent none
};

}  // namespace cairn::nvme
