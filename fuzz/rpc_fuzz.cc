// SPDX-License-Identifier: Apache-2.0
// Any bytes as frames of rpc: what is understood has one form only, so that encoding it again gives
// the same bytes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "rpc/wire_format.h"

namespace cairn::rpc {
namespace {

void check_head(Bytes bytes) {
  std::array<std::byte, kHeadSize> head{};
  std::ranges::copy(bytes.first(kHeadSize), head.begin());
  // As it is, and with the magic and the checksum that the fuzzer would seldom find.
  for (const bool is_mended : {false, true}) {
    if (is_mended) {
      std::ranges::copy(as_bytes("CRPC"), head.begin());
      store(MutableBytes(head).subspan(28), crc32c(Bytes(head).first(28)));
    }
    const Result<FrameHead> found = decode_head(head);
    if (!found) continue;
    const Bytes body = bytes.subspan(kHeadSize);
    if (!check_body(*found, body)) continue;
    CHECK(std::ranges::equal(encode_head(*found, body), head));
  }
}

}  // namespace
}  // namespace cairn::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.size() >= rpc::kHeadSize) rpc::check_head(bytes);
  if (const Result<rpc::Hello> hello = rpc::decode_hello(bytes)) {
    CHECK(rpc::encode(*hello) == as_text(bytes));
  }
  if (const Result<rpc::Welcome> welcome = rpc::decode_welcome(bytes)) {
    CHECK(rpc::encode(*welcome) == as_text(bytes));
  }
  return 0;
}
