// SPDX-License-Identifier: Apache-2.0
// What an NBD server can be told.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "door/nbd/keys.h"
#include "tls/certificate.h"

namespace cairn::door {

class ExportFinder;

struct NbdOptions {
  uint32_t connections_max = 1024;
  ExportFinder* finder = nullptr;       // asked for names that were not added; null: there are none
  Duration negotiation_timeout = 30_s;  // from the first byte to the chosen export, TLS included
  // How long a client may take to send the rest of a request, or to take replies. Between requests
  // it may take as long as it likes.
  Duration stall_timeout = 120_s;
  // Who may come, when nobody is heard without TLS: those with a key, or those that trust our
  // certificate, which passed check(). Both null: no TLS. Outlive the server.
  const NbdKeys* keys = nullptr;
  const tls::Certificate* certificate = nullptr;
};

// Requests of one connection that are served at once; further ones wait in the socket.
inline constexpr size_t kRequestsMax = 128;

}  // namespace cairn::door
