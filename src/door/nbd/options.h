// SPDX-License-Identifier: Apache-2.0
// What an NBD server can be told.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "door/nbd/keys.h"
#include "env/connection_slots.h"
#include "stream/reception.h"
#include "tls/certificate.h"

namespace cairn::door::nbd {

class ExportFinder;

struct NbdOptions {
  // A client has proven itself when it has chosen an export, with whatever that takes here.
  env::ConnectionLimits connections{.connections_max = 1024, .unproven_max = 128, .reserved = 128};
  // A client that has asked for nothing for so long is ended when connections_max are here and
  // another one wants to come in, which finds the place when it comes again. Else it may stay.
  Duration idle_timeout = 600_s;
  // On the server's core: who found no place, or was refused what it asked for, and left.
  stream::RefusedConnectionHook on_refused;
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

}  // namespace cairn::door::nbd
