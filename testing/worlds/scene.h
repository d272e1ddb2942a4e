// SPDX-License-Identifier: Apache-2.0
// Scene: what a conformance test may ask of the world it runs in, besides its Env.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "env/address.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::conformance {

// What a world has when the test's body starts.
struct Setting {
  uint32_t cores = 2;
  // No faults in the simulator, not even those a correct program never notices.
  bool calm = false;
  // connected() gives streams that run through TLS.
  bool encrypted = false;
  // Of real worlds; see env::WorldOptions.
  Duration spin{0};
  Duration nap{0};
};

// any_port() and disk() on every core, the others on the one the body started on.
class Scene {
 public:
  virtual ~Scene() = default;

  virtual bool is_simulated() const { return false; }

  // An address of this machine, port 0.
  virtual env::Address any_port() const = 0;
  // The same for IPv6 and for local sockets; none where the world or the machine has no such thing.
  virtual std::optional<env::Address> any_port_ip6() const { return std::nullopt; }
  virtual std::optional<env::Address> local_socket(std::string_view) const { return std::nullopt; }
  // An address that is not of this machine.
  virtual env::Address foreign_address() const = 0;
  // An address where a connection attempt is neither accepted nor refused.
  virtual env::Address silent_address() = 0;

  // How to open a scratch disk of that name. Nothing of that name exists yet.
  virtual env::DiskOptions disk(std::string_view name, uint64_t size) const = 0;
  // From now on reads of all of its blocks fail with kIo.
  virtual void break_reads(const env::DiskOptions& disk) = 0;

  // Memory as a peer makes it who may take a part of it away again; and that.
  virtual env::Descriptor foreign_memory(env::Env& env, uint64_t size) = 0;
  virtual void shrink(const env::Descriptor& memory, uint64_t size) = 0;
  // A signal of a peer who never takes it, so that there is no room to raise it again.
  virtual env::Descriptor full_signal(env::Env& env) = 0;

  // Asks the world to end, as a signal to the process would.
  virtual void request_stop() = 0;

  // What streams leave behind when they go; waited for when the body has ended.
  task::Gate& lingering() { return lingering_; }
  void set_encrypted(bool encrypted) { is_encrypted_ = encrypted; }
  bool is_encrypted() const { return is_encrypted_; }

  // The test cannot run here; the body returns after this.
  void skip(std::string_view reason) { skipped_ = reason; }
  const std::string& skipped() const { return skipped_; }

 private:
  std::string skipped_;
  bool is_encrypted_ = false;
  task::Gate lingering_;
};

// A test's body: a coroutine on the first core. Everything it started has ended when it returns.
using Body = task::Task<void> (*)(env::Env&, Scene&);

// The body, and what its streams left behind.
task::Task<void> run_to_end(env::Env& env, Scene& scene, Body body);

}  // namespace cairn::conformance
