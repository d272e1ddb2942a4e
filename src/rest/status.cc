// SPDX-License-Identifier: Apache-2.0
#include "rest/status.h"

namespace cairn::rest {

Error error_of_status(uint16_t status) {
  switch (status) {
    case 401:
    case 403:
      return {Errc::kDenied, "the HTTP server forbids it: give this host access", status};
    case 404:
    case 409:
    case 410:
      return {Errc::kNotFound, "the HTTP server has no such folder: create it", status};
    case 405:
    case 501:
      return {Errc::kUnsupported,
              "the HTTP server does not take this method: switch GET, HEAD, PUT and DELETE on",
              status};
    case 413:
      return {Errc::kUnsupported,
              "the HTTP server takes no body as large as an object: raise its limit", status};
    case 507:
      return {Errc::kNoSpace, "the HTTP server is full", status};
    case 429:
      return {Errc::kLimit, "the HTTP server is asked too much: use fewer connections"};
    case 500:
      return {Errc::kIo, "the HTTP server failed (500): its log says why"};
    case 502:
    case 503:
    case 504:
      return {Errc::kIo, "the HTTP server is not at work (502 to 504): start it again"};
    default:
      break;
  }
  if (status >= 300 && status < 400) {
    return {Errc::kUnsupported, "the HTTP server redirects: name the place it redirects to",
            status};
  }
  if (status < 300) return {Errc::kCorrupt, "the HTTP server answers something else", status};
  return {Errc::kUnsupported, "the HTTP server refuses it", status};
}

}  // namespace cairn::rest
