// SPDX-License-Identifier: Apache-2.0
// Where the arbiters of a pool are, as users write it:
//
//   10.0.0.1:4440,10.0.0.2:4440                     any of them may lead
//   unix:/run/user/1000/cairn/arbiter.sock          one on this machine
//   10.0.0.1:4440?tls_key=FILE&name=NAME            through TLS, as the client of that name
//
// Values are percent-encoded where they need it, as in URIs of drives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arbiter/remote_arbiter.h"
#include "base/problem.h"
#include "env/address.h"
#include "env/env.h"
#include "rpc/client.h"

namespace cairn::server {

inline constexpr uint16_t kArbiterPort = 4440;

struct ArbiterUri {
  std::vector<env::Address> servers;  // at least one
  std::string tls_key;                // a file; empty: without TLS
  std::string name;                   // by which they know the key

  // The Problem says what is wrong and what could be written.
  static Attempt<ArbiterUri> parse(std::string_view text);
  // "10.0.0.1:4440,10.0.0.2:4440"
  std::string servers_text() const;
};

// The socket of this user's arbiter.
std::string own_arbiter();
// The one to ask where nothing is said: this user's if it is there, else that of the machine's
// services (common/run_folder.h), else this user's.
std::string default_arbiter();

// How any of their services is called. The Problem: the key's file cannot be used.
Attempt<rpc::ClientOptions> arbiter_client(const ArbiterUri& uri);

// A client of them, who need not answer yet. `on_refused` is told who this client is when one of
// them refuses it; may be empty. The Problem: the key's file cannot be used.
Attempt<std::unique_ptr<arbiter::RemoteArbiter>> make_remote_arbiter(
    env::Env& env, const ArbiterUri& uri, std::function<void(std::string)> on_refused = {});

}  // namespace cairn::server
