// SPDX-License-Identifier: Apache-2.0
// `cairn doctor tls`: what happened on the way to a target, judged elsewhere (tls_judge.h).
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/problem.h"
#include "env/env.h"
#include "fabric/host/uri.h"
#include "task/task.h"
#include "tls/engine.h"

namespace cairn::apps::doctor {

// Each error is none when its step succeeded or was not reached; the first one ends the way.
struct TlsFacts {
  std::string address;   // where it led
  std::string host_nqn;  // who asked
  std::string nqn;       // for what
  std::string identity;  // under which the key was offered
  bool has_key = false;  // else one of our own was offered, to see what is answered
  std::optional<Error> connect_error;
  std::optional<Error> handshake_error;
  tls::HandshakeReport report;
  std::optional<Error> greeting_error;  // ICReq and ICResp
  std::optional<Error> session_error;   // Connect, and what follows it
};

// Goes the whole way, three connections at most. The URI has its credentials loaded, or none.
task::Task<Attempt<void>> gather_tls(env::Env& env, fabric::Uri uri, TlsFacts& facts);

}  // namespace cairn::apps::doctor
