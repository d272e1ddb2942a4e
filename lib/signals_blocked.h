// SPDX-License-Identifier: Apache-2.0
// SignalsBlocked: the threads of the library get none of the program's signals.
#pragma once

#include <csignal>

namespace cairn::capi {

// While in scope, threads that are started get no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace cairn::capi
