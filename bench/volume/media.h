// SPDX-License-Identifier: Apache-2.0
// Media: the drives of a pool that is measured, by their URIs, and whoever opens one anew finds
// what was there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "drive/modelled_medium.h"
#include "drive/source.h"
#include "env/env.h"
#include "model/flash/parameters.h"
#include "task/task.h"
#include "volume/mega_vol.h"

namespace cairn::bench {

class Media : public volume::MegaVolSource {
 public:
  virtual std::vector<std::string> uris() const = 0;
  // When every drive is closed.
  virtual task::Task<void> close(env::Env& env) = 0;
};

// In memory or in files: all alike.
class SpecMedia final : public Media {
 public:
  // Errors of Source::make().
  static Result<std::unique_ptr<SpecMedia>> make(env::Env& env, size_t drives,
                                                 const drive::Spec& spec);

  std::vector<std::string> uris() const override;
  task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                         task::CancelToken token) override;
  task::Task<void> close(env::Env& env) override;

 private:
  explicit SpecMedia(env::Env& env) : env_(env) {}
  env::Env& env_;
  std::map<std::string, std::unique_ptr<drive::Source>> sources_;
};

// Of any size, and remember nothing but their first blocks: in the others each byte reads as the
// filler. For arbiters, which look at labels, and below models, which say how long requests take.
class BlankMedia : public Media {
 public:
  BlankMedia(size_t drives, uint64_t bytes, int filler = 0);

  std::vector<std::string> uris() const override;
  task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                         task::CancelToken token) override;
  task::Task<void> close(env::Env& env) override;

 private:
  uint64_t bytes_;
  int filler_;
  std::map<std::string, std::vector<std::byte>> firsts_;
};

// Modelled SSDs. What they hold is not kept, and never zeroes, which whoever copies would leave
// out.
class FlashMedia final : public BlankMedia {
 public:
  // Each so large; kInvalid: the model is smaller.
  static Result<std::unique_ptr<FlashMedia>> make(env::Env& env, size_t drives, uint64_t bytes,
                                                  const flash::Parameters& parameters);
  task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                         task::CancelToken token) override;

 private:
  FlashMedia(env::Env& env, size_t drives, uint64_t bytes)
      : BlankMedia(drives, bytes, 0x5a), env_(env) {}
  env::Env& env_;
  std::map<std::string, std::unique_ptr<drive::ModelledMedium>> models_;
};

// One modelled SSD that any number of drives of this core use, and that remembers as little. Errors
// of ModelledMedium::make().
Result<std::unique_ptr<drive::Source>> make_blank_ssd(env::Env& env, uint64_t bytes,
                                                      const flash::Parameters& parameters);

}  // namespace cairn::bench
