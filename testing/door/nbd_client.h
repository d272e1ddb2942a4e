// SPDX-License-Identifier: Apache-2.0
// A small NBD client that says exactly what a test wants said, true or not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "door/nbd/wire_format.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/task.h"

namespace cairn::door_tests {

using Content = std::vector<std::byte>;

struct OptionAnswer {
  door::nbd::OptionReply type{};
  Content data;
};

// What the server told of an export.
struct Told {
  uint64_t size = 0;
  uint16_t flags = 0;
  uint32_t minimum = 0;
  uint32_t preferred = 0;
  uint32_t maximum = 0;
};

// All that came for one request.
struct Answer {
  uint64_t cookie = 0;
  uint32_t error = 0;
  std::optional<uint64_t> error_offset;
  Content data;  // of a read; holes are zeroes
  uint32_t chunks = 0;
  uint32_t holes = 0;
  std::vector<door::nbd::StatusExtent> extents;
};

struct Ask {
  door::nbd::Command command = door::nbd::Command::kRead;
  uint64_t offset = 0;
  uint32_t length = 0;
  uint16_t flags = 0;
};

// Errors are those of the stream, or kCorrupt when the server breaks the protocol.
class NbdClient {
 public:
  // `timeout` is how long the server may take for any step.
  explicit NbdClient(env::Env& env, Duration timeout = 1000_s) : env_(env), timeout_(timeout) {}

  task::Task<Result<void>> dial(env::Address at);
  // Reads the greeting and answers it.
  task::Task<Result<void>> greet(uint32_t flags = door::nbd::kFixedNewstyle | door::nbd::kNoZeroes);
  task::Task<Result<void>> send(Bytes bytes);
  task::Task<Result<Content>> receive(size_t size);

  task::Task<Result<void>> ask_option(door::nbd::Option option, Content payload = {});
  task::Task<Result<OptionAnswer>> option_answer(door::nbd::Option option);
  // An option with one answer.
  task::Task<Result<OptionAnswer>> option(door::nbd::Option option, Content payload = {});
  task::Task<Result<void>> structured();
  task::Task<Result<void>> allocation(std::string_view name);
  // kNotFound: the server refused.
  task::Task<Result<Told>> go(std::string_view name, door::nbd::Option by = door::nbd::Option::kGo);
  // All of the above, as most clients do.
  task::Task<Result<Told>> arrive(env::Address at, std::string_view name, bool is_structured);

  // Sends a request; gives its cookie.
  task::Task<Result<uint64_t>> ask(Ask request, Bytes payload = {});
  // The next that is complete, of any request.
  task::Task<Result<Answer>> answer();
  // One request and its answer.
  task::Task<Result<Answer>> call(Ask request, Bytes payload = {});

  env::Stream& stream() { return *stream_; }
  void hang_up() { stream_.reset(); }

 private:
  task::Task<Result<bool>> take_chunk();
  task::Task<Result<void>> take_body(Answer& into, const door::nbd::ChunkHeader& header);

  env::Env& env_;
  Duration timeout_;
  std::unique_ptr<env::Stream> stream_;
  std::map<uint64_t, Ask> asked_;
  std::map<uint64_t, Answer> coming_;
  std::optional<Answer> complete_;
  uint64_t last_cookie_ = 0;
};

// The payload of INFO and GO, and of the options for contexts.
Content info_payload(std::string_view name);
Content context_payload(std::string_view name, const std::vector<std::string>& queries);

}  // namespace cairn::door_tests
