// SPDX-License-Identifier: Apache-2.0
// Which hosts have to authenticate, with which keys, hashes and groups.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "nvme/auth/auth_format.h"
#include "nvme/auth/auth_secret.h"

namespace cairn::nvme {

struct AuthKeys {
  AuthSecret host;                       // the host proves itself with it
  std::optional<AuthSecret> controller;  // and the controller, if it is asked to

  bool operator==(const AuthKeys&) const = default;
};

// Hashes and groups that an end accepts, in order of preference. A controller chooses. Every group
// is safe with random keys; more expensive groups come after cheaper ones, and the NULL group, with
// which a key that leaks later can be verified against a recorded exchange, is last.
struct AuthMeans {
  std::vector<AuthHash> hashes = {AuthHash::kSha512, AuthHash::kSha384, AuthHash::kSha256};
  std::vector<AuthGroup> groups = {AuthGroup::kFfdhe2048, AuthGroup::kFfdhe3072,
                                   AuthGroup::kFfdhe4096, AuthGroup::kFfdhe6144,
                                   AuthGroup::kFfdhe8192, AuthGroup::kNull};

  bool operator==(const AuthMeans&) const = default;
};

// Of one subsystem. Hosts that are not named need not authenticate.
struct AuthPolicy {
  std::map<std::string, AuthKeys, std::less<>> hosts;  // by NQN
  AuthMeans means;
  Duration timeout = 30_s;  // of a whole transaction, and from Connect to the end of the first
};

}  // namespace cairn::nvme
