// SPDX-License-Identifier: Apache-2.0
// What to tell a person about a drive or address that a server could not take.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/problem.h"
#include "drive/source.h"
#include "env/address.h"
#include "nvme/controller/registry.h"

namespace cairn::server {

Problem cannot_serve(const drive::Spec& drive, const Error& error);
Problem cannot_serve(const nvme::NamespaceOptions& options, const Error& error);
Problem cannot_listen(const env::Address& at, const Error& error);
// What to do about a namespace whose requests fail so.
std::string_view next_after(const Error& failure);
// " (process 123)" where one listens at that local socket; else nothing.
std::string listener_text(const std::string& path);

}  // namespace cairn::server
