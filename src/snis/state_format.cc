// SPDX-License-Identifier: Apache-2.0
#include "snis/state_format.h"

#include <cstddef>

#include "base/crc32c.h"
#include "base/rng.h"

namespace cairn::snis {

namespace {

Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
void append_all(std::string& out, const std::vector<T>& values) {
  static_assert(sizeof(T) == 8);
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

uint32_t crc_of(const StateHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(StateHeader, header_crc32c)));
}

// Takes numbers from the front; once they run out, everything is zero and `whole` false.
class Taker {
 public:
  explicit Taker(Bytes bytes) : rest_(bytes) {}
  uint64_t number() {
    if (rest_.size() < 8) {
      whole_ = false;
      return 0;
    }
    const auto value = load<uint64_t>(rest_);
    rest_ = rest_.subspan(8);
    return value;
  }
  template <class T>
  std::vector<T> list(uint64_t count) {
    if (count > rest_.size() / sizeof(T)) {
      whole_ = false;
      return {};
    }
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(number());
    return values;
  }
  bool whole() const { return whole_ && rest_.empty(); }

 private:
  Bytes rest_;
  bool whole_ = true;
};

}  // namespace

uint64_t fingerprint(std::span<const trace::Record> requests, std::string_view description) {
  uint64_t hash = crc32c(bytes_of(description));
  const auto mix = [&](uint64_t value) { hash = mix64(hash ^ value); };
  mix(description.size());
  mix(requests.size());
  for (const trace::Record& request : requests) {
    mix(static_cast<uint64_t>(request.arrival));
    mix(request.offset);
    mix(uint64_t{request.bytes} << 1 | (request.write ? 1 : 0));
    mix(uint64_t{request.initiator} << 32 | request.target);
  }
  return hash;
}

std::string encode_state(const Iteration& iteration, const StateKey& key) {
  std::string body;
  const Times& t = iteration.times;
  for (const auto* times :
       {&t.storage_arrival, &t.storage_departure, &t.network_arrival, &t.network_departure}) {
    append_all(body, *times);
  }
  const NetworkFacts& n = iteration.network;
  for (const uint64_t number : {n.pauses_at_hosts, n.pauses_at_switches, n.marks, n.drops,
                                n.data_packets, n.events, static_cast<uint64_t>(n.bin)}) {
    append(body, number);
  }
  for (const auto* series : {&n.spine_pauses, &n.read_bytes, &n.write_bytes}) {
    append(body, uint64_t{series->size()});
    append_all(body, *series);
  }
  StateHeader header{.iteration = key.iteration,
                     .fingerprint = key.fingerprint,
                     .requests = key.requests,
                     .body_bytes = body.size(),
                     .body_crc32c = crc32c(bytes_of(body))};
  header.header_crc32c = crc_of(header);
  std::string out;
  append(out, header);
  return out + body;
}

Result<Iteration> decode_state(std::string_view text, const StateKey& key) {
  if (text.size() < sizeof(StateHeader)) return fail(Errc::kCorrupt, "the file is too short");
  const auto header = load<StateHeader>(bytes_of(text));
  const Bytes body = bytes_of(text).subspan(sizeof(StateHeader));
  if (header.magic != kStateMagic) return fail(Errc::kCorrupt, "not the state of an iteration");
  if (header.header_crc32c != crc_of(header) || header.body_bytes != body.size() ||
      header.body_crc32c != crc32c(body)) {
    return fail(Errc::kCorrupt, "the file is damaged");
  }
  if (header.version != kStateVersion) {
    return fail(Errc::kUnsupported, "written by another version of Cairn");
  }
  if (header.iteration != key.iteration || header.fingerprint != key.fingerprint ||
      header.requests != key.requests) {
    return fail(Errc::kMismatch, "of another trace, drive, network or iteration");
  }
  Taker taker(body);
  Iteration found;
  Times& t = found.times;
  t.storage_arrival = taker.list<Nanos>(key.requests);
  t.storage_departure = taker.list<Nanos>(key.requests);
  t.network_arrival = taker.list<Picos>(key.requests);
  t.network_departure = taker.list<Picos>(key.requests);
  NetworkFacts& n = found.network;
  for (uint64_t* number : {&n.pauses_at_hosts, &n.pauses_at_switches, &n.marks, &n.drops,
                           &n.data_packets, &n.events}) {
    *number = taker.number();
  }
  n.bin = static_cast<Picos>(taker.number());
  for (auto* series : {&n.spine_pauses, &n.read_bytes, &n.write_bytes}) {
    const uint64_t count = taker.number();
    *series = taker.list<uint64_t>(count);
  }
  if (!taker.whole()) return fail(Errc::kCorrupt, "the lengths in the file do not fit");
  return found;
}

}  // namespace cairn::snis
