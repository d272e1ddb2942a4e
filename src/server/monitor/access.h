// SPDX-License-Identifier: Apache-2.0
// ApiAccess: who may read the JSON API of a process over HTTP.
//
// Without a token only clients of this machine may, who name it by an address or as localhost: a
// page in a browser that had another name point here may not. With a token everybody who shows it
// may, and nobody else but at a local socket, which has modes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "crypto/hash.h"
#include "env/env.h"
#include "http/server.h"

namespace cairn::server {

// As it is kept, and as what a client shows is compared.
crypto::Digest digest_of_token(std::string_view token);

class ApiAccess {
 public:
  ApiAccess(env::Env& env, std::optional<crypto::Digest> token)
      : env_(env), token_(std::move(token)) {}

  // None: it may read. Else what it is answered.
  std::optional<http::Page> judge(const http::Asked& asked);

  // Wrong tokens of one address within a minute; then it is refused unheard until that is over.
  static constexpr uint32_t kFailuresMax = 10;
  static constexpr Duration kWindow = 60_s;

 private:
  struct Failures {
    uint32_t count = 0;
    Time since;
  };
  bool is_limited(const std::string& host);
  void note_failure(const std::string& host);

  env::Env& env_;
  const std::optional<crypto::Digest> token_;
  std::map<std::string, Failures> failures_;  // by the address of whoever failed
};

// {"schema_version": 1, "error": SENTENCE}.
http::Page api_problem(http::Status status, std::string_view sentence);

}  // namespace cairn::server
