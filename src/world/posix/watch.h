// SPDX-License-Identifier: Apache-2.0
// How the two real worlds wait for a descriptor that they do not read or write by themselves, and
// raise an event.
#pragma once

#include <memory>

#include "world/posix/fd.h"

namespace cairn::posix {

// Open until the last request of the kernel that names it is over.
using SharedFd = std::shared_ptr<const Fd>;

// Tells when a descriptor is worth another try. On one core.
class Watch {
 public:
  // Told between tasks. Completes operations, never runs user code.
  class User {
   public:
    virtual void on_readable() = 0;
    virtual void on_writable() = 0;
    virtual void on_hang_up() {}

   protected:
    ~User() = default;
  };

  virtual ~Watch() = default;
  // The user is told once the answer is yes, perhaps in vain, perhaps more often.
  virtual void want_readable() = 0;
  virtual void want_writable() = 0;
  // The peer has left, whatever is there to be read.
  virtual void want_hang_up() = 0;
  // Whether it is also told of what was there before it asked; else it tries first.
  virtual bool tells_what_is_there() const = 0;
};

// Adds one to the counter of an event descriptor and never waits, whatever others do with it.
class EventRaiser {
 public:
  virtual ~EventRaiser() = default;
  virtual void raise() = 0;
};

}  // namespace cairn::posix
