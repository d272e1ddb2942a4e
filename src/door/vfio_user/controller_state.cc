// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/controller_state.h"

#include <cstddef>

#include "base/crc32c.h"

namespace cairn::door::vfio_user {

namespace {

template <class Entry>
void append(std::vector<std::byte>& to, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    const Bytes bytes = nvme::bytes_of(entry);
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
}

// False: there are not that many.
template <class Entry>
bool take(Bytes& from, uint32_t count, std::vector<Entry>& entries) {
  if (count > from.size() / sizeof(Entry)) return false;
  entries.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    entries.push_back(load<Entry>(from));
    from = from.subspan(sizeof(Entry));
  }
  return true;
}

uint32_t checksum_of(StateHeader header, Bytes rest) {
  header.checksum = 0;
  return crc32c(rest, crc32c(nvme::bytes_of(header)));
}

}  // namespace

std::vector<std::byte> ControllerState::encode() const {
  StateHeader header;
  header.magic = kStateMagic;
  header.version = kStateVersion;
  header.registers = registers;
  header.shadow_doorbells = shadow.doorbells;
  header.shadow_events = shadow.event_indexes;
  header.completion_queues = static_cast<uint32_t>(completion.size());
  header.submission_queues = static_cast<uint32_t>(submission.size());
  header.untold = static_cast<uint32_t>(untold.size());
  header.event_requests = static_cast<uint32_t>(event_requests.size());
  header.features = static_cast<uint32_t>(features.size());
  std::vector<std::byte> bytes(sizeof header);
  append(bytes, completion);
  append(bytes, submission);
  append(bytes, untold);
  append(bytes, event_requests);
  append(bytes, features);
  header.checksum = checksum_of(header, Bytes(bytes).subspan(sizeof header));
  store(bytes, header);
  return bytes;
}

Result<ControllerState> ControllerState::decode(Bytes bytes) {
  if (bytes.size() < sizeof(StateHeader)) {
    return fail(Errc::kCorrupt, "a controller's state without its header");
  }
  const auto header = load<StateHeader>(bytes);
  if (header.magic != kStateMagic) return fail(Errc::kCorrupt, "this is no controller's state");
  if (header.version != kStateVersion) {
    return fail(Errc::kUnsupported, "a controller's state of another version",
                static_cast<int32_t>(header.version));
  }
  Bytes rest = bytes.subspan(sizeof header);
  if (header.checksum != checksum_of(header, rest)) {
    return fail(Errc::kCorrupt, "the checksum of a controller's state");
  }
  ControllerState state;
  state.registers = header.registers;
  state.shadow = {.doorbells = header.shadow_doorbells, .event_indexes = header.shadow_events};
  const bool is_whole = take(rest, header.completion_queues, state.completion) &&
                        take(rest, header.submission_queues, state.submission) &&
                        take(rest, header.untold, state.untold) &&
                        take(rest, header.event_requests, state.event_requests) &&
                        take(rest, header.features, state.features) && rest.empty();
  if (!is_whole) return fail(Errc::kCorrupt, "the length of a controller's state");
  for (const StateFeature& feature : state.features) {
    if (feature.size > StateFeature::kDataMax) {
      return fail(Errc::kCorrupt, "a feature in a controller's state");
    }
  }
  return state;
}

}  // namespace cairn::door::vfio_user
