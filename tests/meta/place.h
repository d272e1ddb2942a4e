// SPDX-License-Identifier: Apache-2.0
// Place: a metadata store of some kind, as the conformance suite sees it, and its clients.
#pragma once

#include <cstddef>
#include <memory>

#include "env/env.h"
#include "meta/store.h"
#include "task/task.h"
#include "testing/worlds/scene.h"
#include "testing/worlds/worlds.h"

namespace cairn::meta_tests {

class Place {
 public:
  explicit Place(env::Env& env) : env_(env) {}
  virtual ~Place() = default;

  env::Env& env() { return env_; }
  // Clients 0 and 1: of one store, apart from each other where the kind has such a thing.
  virtual meta::Store& client(size_t index) = 0;
  meta::Store& store() { return client(0); }
  virtual task::Task<void> close() = 0;

 private:
  env::Env& env_;
};

// Each opens an empty store; null: the scene was told why it cannot.
struct Memory {
  static constexpr const char* kName = "memory";
  using World = conformance::Sim;
  static task::Task<std::unique_ptr<Place>> open(env::Env& env, conformance::Scene& scene);
};

// Through a server, by two clients.
struct Served {
  static constexpr const char* kName = "served";
  using World = conformance::Sim;
  static task::Task<std::unique_ptr<Place>> open(env::Env& env, conformance::Scene& scene);
};
struct ServedReal : Served {
  static constexpr const char* kName = "served_real";
  using World = conformance::Epoll;
};

// The same through TLS, as a writer.
struct ServedTls {
  static constexpr const char* kName = "served_tls";
  using World = conformance::Sim;
  static task::Task<std::unique_ptr<Place>> open(env::Env& env, conformance::Scene& scene);
};
struct ServedTlsReal : ServedTls {
  static constexpr const char* kName = "served_tls_real";
  using World = conformance::Epoll;
};

// In a folder of its own.
struct Rocks {
  static constexpr const char* kName = "rocks_epoll";
  using World = conformance::Epoll;
  static task::Task<std::unique_ptr<Place>> open(env::Env& env, conformance::Scene& scene);
};
struct RocksUring : Rocks {
  static constexpr const char* kName = "rocks_uring";
  using World = conformance::Uring;
};

// An etcd of its own, started and ended by the test; skipped where etcd-server is not installed.
struct Etcd {
  static constexpr const char* kName = "etcd";
  using World = conformance::Epoll;
  static task::Task<std::unique_ptr<Place>> open(env::Env& env, conformance::Scene& scene);
};

}  // namespace cairn::meta_tests
