// SPDX-License-Identifier: Apache-2.0
// Sources: drives named by a line of text, opened on every core that serves them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::flash {
struct Parameters;
}

namespace cairn::drive {

class ModelledMedium;

// "mem:size=1G", "file:/var/lib/cairn/d0,size=8G", "flash:profile=laptop-tlc,size=4G". Options
// follow, separated by commas:
//   size=N    bytes, with K, M, G or T (1024 each); a file that exists may leave it out
//   block=N   512 to 65536, default 4096
//   direct=off   file: go through the page cache, for file systems without O_DIRECT
//   profile=NAME   flash: the modelled SSD that says how long requests take
//   file=PATH   flash: where the data is kept; without it in memory
//   precondition=N   flash: so many percent of the modelled SSD were written before, 0 to 90
struct Spec {
  enum class Kind : uint8_t { kMemory, kFile, kFlash };
  Kind kind = Kind::kMemory;
  std::string path;  // empty: the data is in memory
  uint64_t size = 0;
  uint32_t block_size = 4096;
  bool direct = true;
  std::string profile;
  uint32_t precondition = 0;
  // What the profile says; whoever knows profiles fills it in before Source::make.
  std::shared_ptr<const flash::Parameters> flash;

  // What is wrong, as a sentence with the part in question, for the user.
  static std::expected<Spec, std::string> parse(std::string_view text);
  // The canonical form: parse(text()) is the same.
  std::string text() const;
};

// Whether a source of any kind has an option of this name.
bool is_source_option(std::string_view key);

// "4096", "512K", "1G", "1GiB". Nothing when it is no such number or does not fit.
bool parse_size(std::string_view text, uint64_t& size);

// A medium and how to reach it from each core. Made on one core, outlives every Drive it opens.
class Source {
 public:
  virtual ~Source() = default;
  // Errors as Env::open_disk and Env::map_memory; kInvalid when a profile was not filled in or its
  // drive is too small. The medium is held exclusively from here on.
  static Result<std::unique_ptr<Source>> make(env::Env& env, const Spec& spec);
  // The drive as `env`'s core uses it.
  virtual Result<std::unique_ptr<Drive>> open(env::Env& env) = 0;
  // Once, when every drive it opened is closed, before it is destroyed.
  virtual task::Task<void> close(env::Env& /*env*/) { co_return; }
  // As Drive::extent_at of a drive that was opened here for `env`'s core. It may ask another core.
  virtual task::Task<Extent> extent_at(env::Env& /*env*/, const Drive& opened, Lba lba,
                                       uint64_t max) {
    co_return opened.extent_at(lba, max);
  }
  // Where the medium may hold something else than zeroes; memory is new and holds nothing.
  virtual std::vector<env::Disk::Extent> data() const { return {}; }
  // What is modelled, to be looked at on the core that made the source; null: nothing is.
  virtual const ModelledMedium* modelled() const { return nullptr; }
};

}  // namespace cairn::drive
