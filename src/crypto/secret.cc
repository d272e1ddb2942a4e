// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

namespace cairn::crypto {

void wipe(MutableBytes bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

bool is_equal(Bytes a, Bytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

KeptSecret::KeptSecret(Bytes bytes) {
  if (bytes.empty()) return;
  void* pages =
      ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED, "there is memory for a key");
  const int hidden = ::madvise(pages, bytes.size(), MADV_DONTDUMP);
  CHECK(hidden == 0, "every Linux since 3.4 can leave pages out of core files");
  bytes_ = MutableBytes(static_cast<std::byte*>(pages), bytes.size());
  std::ranges::copy(bytes, bytes_.begin());
}

KeptSecret::~KeptSecret() {
  if (bytes_.empty()) return;
  wipe(bytes_);
  ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace cairn::crypto
