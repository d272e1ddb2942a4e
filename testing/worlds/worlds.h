// SPDX-License-Identifier: Apache-2.0
// The three worlds as the conformance suite sees them: each runs a body to its end.
#pragma once

#include <gtest/gtest.h>

#include "testing/worlds/scene.h"

namespace cairn::conformance {

// Real sockets and files. The test is skipped where the kernel has no io_uring.
struct Uring {
  static constexpr const char* kName = "uring";
  static constexpr const char* kEncryptedName = "uring_tls";
  static constexpr const char* kNappingName = "uring_napping";
  static void run(const Setting& setting, Body body);
};
// The same as on a kernel without standing receives and accepts.
struct UringSingle {
  static constexpr const char* kName = "uring_single";
  static constexpr const char* kEncryptedName = "uring_single_tls";
  static void run(const Setting& setting, Body body);
};
struct Epoll {
  static constexpr const char* kName = "epoll";
  static constexpr const char* kEncryptedName = "epoll_tls";
  static constexpr const char* kNappingName = "epoll_napping";
  static void run(const Setting& setting, Body body);
};
// The simulator: once per seed, with faults that a correct program never notices (segments of any
// length, delays, disk completions in any order).
struct Sim {
  static constexpr const char* kName = "sim";
  static constexpr const char* kEncryptedName = "sim_tls";
  static void run(const Setting& setting, Body body);
};

// Each of them with its streams run through TLS.
template <class World>
struct Encrypted {
  static constexpr const char* kName = World::kEncryptedName;
  static void run(Setting setting, Body body) {
    setting.encrypted = true;
    World::run(setting, body);
  }
};

// Cores that look for work for a while before they sleep.
struct UringSpinning {
  static constexpr const char* kName = "uring_spinning";
  static void run(Setting setting, Body body) {
    setting.spin = 20_us;
    Uring::run(setting, body);
  }
};
// Cores that rest for a while when they are woken often.
template <class World>
struct Napping {
  static constexpr const char* kName = World::kNappingName;
  static void run(Setting setting, Body body) {
    setting.nap = 50_us;
    World::run(setting, body);
  }
};

using Worlds = testing::Types<Uring, UringSingle, Epoll, Sim>;
// For facts about streams.
using StreamWorlds =
    testing::Types<Uring, UringSingle, Epoll, Sim, Encrypted<Uring>, Encrypted<UringSingle>,
                   Encrypted<Epoll>, Encrypted<Sim>, UringSpinning, Napping<Uring>, Napping<Epoll>>;

}  // namespace cairn::conformance
