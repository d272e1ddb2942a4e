// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace cairn {

std::string_view name(Errc code) {
  switch (code) {
    case Errc::kInvalid:
      return "invalid";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kExists:
      return "exists";
    case Errc::kDenied:
      return "denied";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kLimit:
      return "limit";
    case Errc::kNoSpace:
      return "no_space";
    case Errc::kIo:
      return "io";
    case Errc::kMismatch:
      return "mismatch";
    case Errc::kCorrupt:
      return "corrupt";
    case Errc::kClosed:
      return "closed";
    case Errc::kReset:
      return "reset";
    case Errc::kUnreachable:
      return "unreachable";
    case Errc::kTimedOut:
      return "timed_out";
    case Errc::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

static Errc code_of_errno(int err) {
  switch (err) {
    case EINVAL:
    case EBADF:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
      return Errc::kInvalid;
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return Errc::kNotFound;
    case EEXIST:
    case EADDRINUSE:
    case EBUSY:
      return Errc::kExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kDenied;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
      return Errc::kUnsupported;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS:
    case ENOMEM:
    case ENOBUFS:
      return Errc::kLimit;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::kNoSpace;
    case EILSEQ:
    case EBADMSG:
      return Errc::kCorrupt;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
      return Errc::kReset;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case ENETDOWN:
      return Errc::kUnreachable;
    case ETIMEDOUT:
    case ETIME:
      return Errc::kTimedOut;
    case ECANCELED:
      return Errc::kCancelled;
    default:
      return Errc::kIo;
  }
}

Error Error::from_errno(int err, const char* what) { return Error(code_of_errno(err), what, err); }

std::string Error::text() const {
  if (detail_ == 0) return fmt::format("{}: {}", what_, name(code_));
  // from_errno is the only maker of details that fit an errno's code; anything else is a number.
  if (detail_ > 0 && detail_ < 4096 && code_of_errno(detail_) == code_) {
    return fmt::format("{}: {} ({})", what_, name(code_), std::strerror(detail_));
  }
  return fmt::format("{}: {} ({})", what_, name(code_), detail_);
}

}  // namespace cairn
