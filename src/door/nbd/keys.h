// SPDX-License-Identifier: Apache-2.0
// NbdKeys: the pre-shared keys of TLS clients, as GnuTLS's psktool writes them, which is the form
// that NBD clients read too.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "crypto/secret.h"
#include "tls/psk.h"

namespace cairn::door::nbd {

// Lines of NAME:HEX. Made once, then read by every core.
class NbdKeys {
 public:
  // kInvalid: a line is none (detail(): which one), a name comes twice, or there is no key at all.
  static Result<NbdKeys> parse(std::string_view text);

  // kDenied: none of the names is known.
  Result<tls::Psk> choose(const std::vector<std::string>& names) const;
  // In the order of the file.
  std::vector<std::string> names() const;

 private:
  std::vector<std::pair<std::string, crypto::KeptSecret>> keys_;
};

}  // namespace cairn::door::nbd
