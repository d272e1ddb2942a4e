// SPDX-License-Identifier: Apache-2.0
// Any bytes as bodies of what clients and operators say to arbiters, and hear from them, and of
// what arbiters keep: what is understood has one form only, so that encoding it again gives the
// same bytes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "arbiter/arbiter_wire_format.h"
#include "arbiter/record_format.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::arbiter {
namespace {

// A record with that body and a checksum that holds.
std::string record_of(uint8_t kind, Bytes body) {
  std::string record(8, '\0');
  record[0] = static_cast<char>(kind);
  record[1] = 1;
  const uint32_t checksum = crc32c(body, crc32c(as_bytes(record).first(2)));
  store(std::as_writable_bytes(std::span(record)).subspan(4), checksum);
  return record + std::string(as_text(body));
}

void read_records(uint8_t kind, Bytes body) {
  const std::string record = record_of(static_cast<uint8_t>(kind % 5 + 1), body);
  const Bytes bytes = as_bytes(record);
  if (const auto pool = decode_pool(bytes)) CHECK(encode(*pool) == record);
  if (const auto drive = decode_drive(bytes)) CHECK(encode(*drive) == record);
  if (const auto volume = decode_volume(bytes)) CHECK(encode(*volume) == record);
  if (const auto map = decode_map(bytes)) CHECK(encode(*map) == record);
  if (const auto cleaning = decode_cleaning(bytes)) CHECK(encode_cleaning(*cleaning) == record);
}

}  // namespace
}  // namespace cairn::arbiter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const auto call =
      static_cast<arbiter::Call>(std::to_integer<uint8_t>(bytes[0]) % arbiter::kLastCall + 1);
  const Bytes body = bytes.subspan(1);
  const Result<arbiter::CallArgs> request = arbiter::decode_args(call, body);
  if (request) {
    CHECK(arbiter::call_of(*request) == call);
    CHECK(arbiter::encode(*request) == as_text(body));
  }
  const Result<arbiter::Outcome> outcome = arbiter::decode_outcome(call, body);
  if (outcome) CHECK(arbiter::encode(call, *outcome) == as_text(body));
  arbiter::read_records(std::to_integer<uint8_t>(bytes[0]), body);
  return 0;
}
