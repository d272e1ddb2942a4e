// SPDX-License-Identifier: Apache-2.0
// What the two sides of a session tell each other in their first messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vfio_user/wire_format.h"

namespace cairn::door::vfio_user {

// What a peer can do. What it did not say is what the specification assumes then.
struct Capabilities {
  uint16_t minor = kMinor;
  uint64_t descriptors_max = kDescriptorsDefault;  // in one message to it
  uint64_t transfer_max = kTransferDefault;        // bytes of data in one message to it
  bool write_multiple = false;
};

// The payload of a version message. kInvalid: it is none, or its JSON is none, or a value has a
// kind it cannot have; kUnsupported: another major version. Names that are not known are ignored.
Result<Capabilities> parse_version(Bytes payload);

// The server's answer: of its capabilities those that the client has named (a client that named
// nothing is told the limits), and the lower of the two minor versions. Needs a payload that
// parse_version has taken.
std::vector<std::byte> answer_version(Bytes payload);

// What our own client says.
std::vector<std::byte> propose_version();

}  // namespace cairn::door::vfio_user
