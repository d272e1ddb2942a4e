// SPDX-License-Identifier: Apache-2.0
#include "crypto/xts.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "crypto/secret.h"
#include "crypto/with.h"

namespace cairn::crypto {

namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, With<EVP_CIPHER_CTX_free>>;

constexpr int kEncrypt = 1;
constexpr int kDecrypt = 0;

const unsigned char* data_of(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Context prepare(const EVP_CIPHER* cipher, Bytes key, int direction) {
  Context context(EVP_CIPHER_CTX_new());
  CHECK(context != nullptr, "libcrypto has memory");
  const int ready =
      EVP_CipherInit_ex2(context.get(), cipher, data_of(key), nullptr, direction, nullptr);
  CHECK(ready == 1, "libcrypto takes every XTS key of two different halves");
  return context;
}

void run(EVP_CIPHER_CTX* context, uint64_t sector, Bytes from, MutableBytes to) {
  CHECK(from.size() == to.size() && from.size() >= kXtsSectorMin && from.size() <= kXtsSectorMax &&
        is_aligned(from.size(), kXtsSectorMin));
  std::array<std::byte, 16> tweak{};
  store(tweak, sector);
  int size = 0;
  const bool sound =
      EVP_CipherInit_ex2(context, nullptr, nullptr, data_of(tweak), -1, nullptr) == 1 &&
      EVP_CipherUpdate(context, reinterpret_cast<unsigned char*>(to.data()), &size, data_of(from),
                       static_cast<int>(from.size())) == 1;
  CHECK(sound && static_cast<size_t>(size) == to.size(), "XTS takes any sector");
}

}  // namespace

struct Xts::State {
  Context encrypting;
  Context decrypting;
};

Xts::Xts(Bytes key) : state_(std::make_unique<State>()) {
  CHECK(key.size() == kXtsKeySize);
  const size_t half = kXtsKeySize / 2;
  CHECK(!is_equal(key.first(half), key.subspan(half)));
  const std::unique_ptr<EVP_CIPHER, With<EVP_CIPHER_free>> cipher(
      EVP_CIPHER_fetch(nullptr, "AES-256-XTS", nullptr));
  CHECK(cipher != nullptr, "libcrypto has AES-256-XTS");
  state_->encrypting = prepare(cipher.get(), key, kEncrypt);
  state_->decrypting = prepare(cipher.get(), key, kDecrypt);
}
Xts::Xts(Xts&&) noexcept = default;
Xts& Xts::operator=(Xts&&) noexcept = default;
Xts::~Xts() = default;

void Xts::encrypt(uint64_t sector, Bytes from, MutableBytes to) {
  run(state_->encrypting.get(), sector, from, to);
}
void Xts::decrypt(uint64_t sector, Bytes from, MutableBytes to) {
  run(state_->decrypting.get(), sector, from, to);
}

}  // namespace cairn::crypto
