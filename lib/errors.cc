// SPDX-License-Identifier: Apache-2.0
#include "lib/errors.h"

#include <cerrno>

namespace cairn::capi {

int errno_of(const Error& error) {
  switch (error.code()) {
    case Errc::kInvalid:
      return EINVAL;
    case Errc::kNotFound:
      return ENOENT;
    case Errc::kExists:
      return EEXIST;
    case Errc::kDenied:
      return EACCES;
    case Errc::kUnsupported:
      return EOPNOTSUPP;
    case Errc::kLimit:
      return EAGAIN;
    case Errc::kNoSpace:
      return ENOSPC;
    case Errc::kIo:
      return EIO;
    case Errc::kMismatch:
      return EILSEQ;
    case Errc::kCorrupt:
      return EBADMSG;
    case Errc::kClosed:
      return ESHUTDOWN;
    case Errc::kReset:
      return ECONNRESET;
    case Errc::kUnreachable:
      return EHOSTUNREACH;
    case Errc::kTimedOut:
      return ETIMEDOUT;
    case Errc::kCancelled:
      return ECANCELED;
  }
  return EIO;
}

}  // namespace cairn::capi
