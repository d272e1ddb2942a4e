// SPDX-License-Identifier: Apache-2.0
// TearGuard: shared memory whose file another process cuts short does not kill this one.
//
// Touching a page that its file no longer has raises SIGBUS. For a guarded mapping the handler puts
// zeroes from that page to the mapping's end, of this process alone, marks it as torn, and the
// access goes on. Any other SIGBUS ends the process as if nobody had handled it.
#pragma once

#include <cstddef>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::posix {

class TearGuard {
 public:
  // Of all guards of a process.
  static constexpr size_t kGuardsMax = 16384;

  struct Mapping {
    MutableBytes bytes;  // of whole pages
    size_t page_size = 4096;
    int protection = 0;  // PROT_*
  };

  // From here on until the guard goes, which is before the memory is unmapped. kLimit. From any
  // thread; a thread that touches guarded memory has SIGBUS unblocked.
  static Result<TearGuard> make(const Mapping& mapping);
  TearGuard(TearGuard&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  TearGuard& operator=(TearGuard&&) = delete;
  ~TearGuard();

  bool is_torn() const;

  struct Slot;

 private:
  explicit TearGuard(Slot* slot) : slot_(slot) {}
  Slot* slot_;
};

}  // namespace cairn::posix
