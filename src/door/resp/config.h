// SPDX-License-Identifier: Apache-2.0
// Config: what CONFIG GET tells and CONFIG SET changes, under Redis's names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "door/resp/options.h"

namespace cairn::door::resp {

// Some parameters mean something here; others are Redis's own: they are kept for clients that set
// them and read them back, and have no effect.
class Config {
 public:
  explicit Config(const RespOptions& options);

  struct Parameter {
    std::string_view name;
    std::string value;
  };
  std::span<const Parameter> all() const { return parameters_; }
  // Empty: `value` is the parameter's now. Else why it is not: "can't set immutable config".
  std::string set(std::string_view name, std::string_view value);
  // In small letters.
  bool has(std::string_view name) const;
  // What it was given at start where that matters to clients.
  void note_address(std::string_view host, uint16_t port);

  uint32_t clients_max() const { return clients_max_; }
  uint64_t client_bytes_max() const { return client_bytes_max_; }
  Duration idle_timeout() const { return idle_timeout_; }

 private:
  Parameter* find(std::string_view name);

  std::vector<Parameter> parameters_;
  uint32_t clients_max_;
  uint64_t client_bytes_max_;
  Duration idle_timeout_;
};

}  // namespace cairn::door::resp
