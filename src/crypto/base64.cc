// SPDX-License-Identifier: Apache-2.0
#include "crypto/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>

#include "crypto/secret.h"

namespace cairn::crypto {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(Bytes bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();  // the zero byte that OpenSSL ends it with
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  const bool sound =
      text.size() % 4 == 0 && text.size() < INT32_MAX &&
      text.substr(0, text.size() - padding).find_first_not_of(kAlphabet) == std::string_view::npos;
  if (!sound) return std::nullopt;
  std::vector<std::byte> bytes(text.size() / 4 * 3);
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < 0) {
    return std::nullopt;
  }
  bytes.resize(bytes.size() - padding);
  // Bits behind the last byte must be zero, or two texts would mean the same.
  std::string again = to_base64(bytes);
  const bool same = again == text;
  wipe(std::as_writable_bytes(std::span(again)));
  if (!same) {
    wipe(bytes);
    return std::nullopt;
  }
  return bytes;
}

}  // namespace cairn::crypto
