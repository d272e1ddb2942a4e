// SPDX-License-Identifier: Apache-2.0
// What an Error of the host means to the person who typed the URI, and what to do next.
#pragma once

#include <string>

#include "base/error.h"
#include "base/problem.h"
#include "env/address.h"
#include "fabric/host/uri.h"

namespace cairn::server {

// "LBA out of range (080h)" of a status that a target answered, else the error's own text.
std::string error_sentence(const Error& error);

// Why `uri`'s subsystem could not be connected to at `at`. The options have the host's name.
Problem cannot_connect(const Error& error, const fabric::Uri& uri, const env::Address& at);

// Why a request that had begun came to nothing: "reading 64 KiB at byte 4096 of URI failed: ...".
Problem cannot_do(const std::string& what, const Error& error);

}  // namespace cairn::server
