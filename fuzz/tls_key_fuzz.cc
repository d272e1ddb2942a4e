// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TLS key or identity: no crash, and what is read is written the same again.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "nvme/auth/tls_identity.h"
#include "nvme/auth/tls_key.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes input = std::as_bytes(std::span(data, size));
  if (const Result<nvme::TlsIdentity> identity = nvme::TlsIdentity::parse(as_text(input))) {
    CHECK(identity->text() == as_text(input));
  }
  if (const Result<nvme::TlsKey> key = nvme::TlsKey::parse(as_text(input))) {
    CHECK(key->text() == as_text(input));
    const nvme::TlsNames names{.host = "nqn.host", .subsystem = "nqn.subsystem"};
    const Result<nvme::TlsPsk> psk = key->psk_of(names, nvme::TlsIdentityVersion::k1);
    CHECK(psk.has_value() && nvme::TlsIdentity::parse(psk->identity.text()).has_value());
  }
  return 0;
}
