// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_state.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/words.h"
#include "config/files.h"

namespace cairn::plan {

namespace {
constexpr size_t kFileMax = 8UL << 30;
}  // namespace

Attempt<SnisState> SnisState::open(std::string folder, uint64_t fingerprint, uint64_t requests) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return refuse(fmt::format("cannot make the folder {} ({}): name another with --resume",
                              in_quotes(folder), error.message()));
  }
  return SnisState(std::move(folder), fingerprint, requests);
}

std::string SnisState::path(uint32_t iteration) const {
  return fmt::format("{}/iteration-{:04}.snis", folder_, iteration);
}

Attempt<std::optional<snis::Iteration>> SnisState::load(uint32_t iteration) const {
  const std::string file = path(iteration);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const Attempt<std::string> bytes = config::read_file(file, kFileMax);
  if (!bytes) return std::unexpected(bytes.error());
  Result<snis::Iteration> state = snis::decode_state(
      *bytes, {.iteration = iteration, .fingerprint = fingerprint_, .requests = requests_});
  if (state) return std::move(*state);
  if (state.error() == Errc::kMismatch) {
    return refuse(fmt::format("{} is {}: name an empty folder with --resume", in_quotes(file),
                              state.error().what()));
  }
  return refuse(fmt::format("{}: {}. Remove it, and the run goes on from the iteration before",
                            in_quotes(file), state.error().what()));
}

Attempt<void> SnisState::save(uint32_t iteration, const snis::Iteration& state) const {
  return config::replace_file(
      path(iteration),
      snis::encode_state(
          state, {.iteration = iteration, .fingerprint = fingerprint_, .requests = requests_}));
}

}  // namespace cairn::plan
