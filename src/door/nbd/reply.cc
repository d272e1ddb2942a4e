// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/reply.h"

#include <cstring>

namespace cairn::door::nbd {

NbdError nbd_error(Errc code) {
  switch (code) {
    case Errc::kInvalid:
      return NbdError::kInvalid;
    case Errc::kDenied:
      return NbdError::kPerm;
    case Errc::kUnsupported:
      return NbdError::kNotSupported;
    case Errc::kLimit:
      return NbdError::kNoMemory;
    case Errc::kNoSpace:
      return NbdError::kNoSpace;
    case Errc::kClosed:
    case Errc::kCancelled:
      return NbdError::kShutdown;
    default:
      return NbdError::kIo;
  }
}

bool is_zero(Bytes bytes) {
  constexpr size_t kProbe = 16;
  for (size_t i = 0; i < bytes.size() && i < kProbe; ++i) {
    if (bytes[i] != std::byte{0}) return false;
  }
  // The front is zero, so all is when each byte equals the one kProbe before it.
  return bytes.size() <= kProbe ||
         std::memcmp(bytes.data(), bytes.data() + kProbe, bytes.size() - kProbe) == 0;
}

}  // namespace cairn::door::nbd
