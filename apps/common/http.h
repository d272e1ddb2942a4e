// SPDX-License-Identifier: Apache-2.0
// Where a process can be looked at over HTTP, as its command line says it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "base/problem.h"
#include "crypto/hash.h"
#include "env/address.h"

namespace cairn::apps {

// --http ADDRESS, and --http-token FILE.
void add_http(CLI::App& app, std::vector<env::Address>& into, std::string& token);
// What is in that file, as it is kept; none where there is no file. The Problem says what is wrong
// with it.
Attempt<std::optional<crypto::Digest>> read_http_token(const std::string& path);

// Prints a line to paste for each. `sockets` gets the local ones, to be removed at the end.
void greet_http(const std::vector<env::Address>& addresses, std::vector<std::string>& sockets);

}  // namespace cairn::apps
