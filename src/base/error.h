// SPDX-License-Identifier: Apache-2.0
// Error and Result: how every call that can fail says so.
//
// An Error is 16 bytes, copies freely and never touches the heap: a code to act on, a number for
// the curious (usually an errno), and a string literal that says what was being done. Input from
// the network, a disk or a user always ends in a Result; a broken promise of our own ends in CHECK.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace cairn {

// What the caller can act on. Each code answers "what should I do next", not "which line failed".
enum class Errc : uint8_t {
  kInvalid = 1,  // the request makes no sense; sending it again is pointless
  kNotFound,     // the named thing does not exist
  kExists,       // the named thing exists already, or an address is in use
  kDenied,       // not permitted
  kUnsupported,  // this kernel, disk or peer cannot do it
  kLimit,        // a named maximum is reached; try again when something was released
  kNoSpace,      // the medium is full
  kIo,           // the medium failed
  kMismatch,     // compared bytes differ
  kCorrupt,      // bytes that came back are not the bytes that were stored or sent
  kClosed,       // the object was closed by this side, or the peer ended in good order
  kReset,        // the peer vanished, or aborted the connection
  kUnreachable,  // nobody answers at the address
  kTimedOut,     // a deadline passed
  kCancelled,    // the caller asked for it to stop
};

// The lower-case name of a code, for logs and JSON: "timed_out".
std::string_view name(Errc code);

class [[nodiscard]] Error {
 public:
  // `what` must be a string literal, or live as long as the program.
  constexpr Error(Errc code, const char* what, int32_t detail = 0)
      : what_(what), detail_(detail), code_(code) {}

  // Translates an errno (positive) of a system call; `what` names the call's purpose.
  static Error from_errno(int err, const char* what);

  constexpr Errc code() const { return code_; }
  constexpr const char* what() const { return what_; }
  constexpr int32_t detail() const { return detail_; }

  // "open drive file: no space (No space left on device)". Allocates; not for the I/O path.
  std::string text() const;

  friend constexpr bool operator==(const Error& error, Errc code) { return error.code_ == code; }

 private:
  const char* what_;
  int32_t detail_;  // an errno where one was the cause, else a number `what` explains, else 0
  Errc code_;
};
static_assert(sizeof(Error) == 16);

template <class T = void>
using Result = std::expected<T, Error>;

// `return fail(Errc::kInvalid, "offset is not aligned");`
constexpr std::unexpected<Error> fail(Errc code, const char* what, int32_t detail = 0) {
  return std::unexpected(Error(code, what, detail));
}
constexpr std::unexpected<Error> fail(Error error) { return std::unexpected(error); }

}  // namespace cairn
