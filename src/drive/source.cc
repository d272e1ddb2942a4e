// SPDX-License-Identifier: Apache-2.0
#include "drive/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "base/units.h"
#include "drive/file_drive.h"
#include "drive/local_opening.h"
#include "drive/memory_drive.h"
#include "drive/modelled_drive.h"
#include "drive/size_text.h"
#include "env/disk_identity.h"
#include "model/flash/precondition.h"
#include "model/flash/scale.h"

namespace cairn::drive {

namespace {

// What is wrong with one option, or nothing.
std::optional<std::string> set_option(Spec& spec, std::string_view key, std::string_view value) {
  if (key == "size") {
    if (parse_size(value, spec.size) && spec.size > 0) return std::nullopt;
    return fmt::format("size '{}' is not a number of bytes such as 512M or 8G", value);
  }
  if (key == "block") {
    uint64_t block = 0;
    if (parse_size(value, block) && std::has_single_bit(block) && block >= 512 && block <= 65536) {
      spec.block_size = static_cast<uint32_t>(block);
      return std::nullopt;
    }
    return fmt::format("block '{}' is not a power of two from 512 to 65536", value);
  }
  if (key == "direct" && spec.kind != Spec::Kind::kMemory) {
    if (value != "on" && value != "off") return fmt::format("direct '{}' is not on or off", value);
    spec.direct = value == "on";
    return std::nullopt;
  }
  const bool is_flash = spec.kind == Spec::Kind::kFlash;
  if (is_flash && (key == "profile" || key == "file")) {
    if (value.empty()) return fmt::format("{} names nothing", key);
    (key == "profile" ? spec.profile : spec.path) = value;
    return std::nullopt;
  }
  if (is_flash && key == "precondition") {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), spec.precondition);
    constexpr auto kMax = static_cast<uint32_t>(100 * flash::kOccupancyMax);
    const bool whole = error == std::errc{} && end == value.data() + value.size();
    if (whole && spec.precondition <= kMax) return std::nullopt;
    return fmt::format("precondition '{}' is not a percentage from 0 to {}", value, kMax);
  }
  return fmt::format("'{}' is not an option of this kind of drive (size, block{}{})", key,
                     spec.kind == Spec::Kind::kMemory ? "" : ", direct",
                     is_flash ? ", profile, file, precondition" : "");
}

// What a whole description lacks, or nothing.
std::optional<std::string> find_lack(const Spec& spec, std::string_view text) {
  using Kind = Spec::Kind;
  if (spec.kind == Kind::kMemory && spec.size == 0) {
    return fmt::format("'{}' has no size: write mem:size=1G", text);
  }
  if (spec.kind == Kind::kFlash && (spec.size == 0 || spec.profile.empty())) {
    return fmt::format("'{}' has no {}: write flash:profile=laptop-tlc,size=4G", text,
                       spec.size == 0 ? "size" : "profile");
  }
  if (spec.kind == Kind::kFlash && spec.path.empty() && !spec.direct) {
    return fmt::format("'{}' has direct and no file: leave it out, or add ,file=PATH", text);
  }
  if (!is_aligned(spec.size, spec.block_size)) {
    return fmt::format("size {} is not a multiple of the block size {}, in '{}'",
                       size_text(spec.size), spec.block_size, text);
  }
  return std::nullopt;
}

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::unique_ptr<MemoryMedium> medium) : medium_(std::move(medium)) {}
  Result<std::unique_ptr<Drive>> open(env::Env& env) override {
    return std::make_unique<MemoryDrive>(env, *medium_);
  }

 private:
  std::unique_ptr<MemoryMedium> medium_;
};

class FileSource final : public Source {
 public:
  FileSource(env::Env& env, std::unique_ptr<env::Disk> keeper, const Spec& spec)
      : keeper_(std::move(keeper)),
        spec_(spec),
        ranges_(env.core_count()),
        incarnation_{.medium = env::medium_id(*keeper_),
                     .opening = env.rng().next() | 1,
                     .local_opening = kKernelKeeps} {}
  Result<std::unique_ptr<Drive>> open(env::Env& env) override {
    Result<std::unique_ptr<env::Disk>> disk =
        env.open_disk({.path = spec_.path, .direct = spec_.direct, .block_size = 0, .lock = false});
    if (!disk) return fail(disk.error());
    return std::make_unique<FileDrive>(env, std::move(*disk), spec_.block_size, ranges_,
                                       incarnation_);
  }
  std::vector<env::Disk::Extent> data() const override {
    std::vector<env::Disk::Extent> all;
    for (auto next = keeper_->next_data(0); next.length > 0;
         next = keeper_->next_data(next.offset + next.length)) {
      all.push_back(next);
    }
    return all;
  }

 private:
  std::unique_ptr<env::Disk> keeper_;  // holds the lock for all cores
  Spec spec_;
  SharedRanges ranges_;
  const Incarnation incarnation_;
};

// Data where another source keeps it, at the pace of one model that all cores share.
class FlashSource final : public Source {
 public:
  FlashSource(std::unique_ptr<Source> below, std::unique_ptr<ModelledMedium> medium)
      : below_(std::move(below)), medium_(std::move(medium)) {}
  Result<std::unique_ptr<Drive>> open(env::Env& env) override {
    Result<std::unique_ptr<Drive>> below = below_->open(env);
    if (!below) return below;
    return ModelledDrive::make(env, std::move(*below), *medium_);
  }
  const ModelledMedium* modelled() const override { return medium_.get(); }

 private:
  std::unique_ptr<Source> below_;
  std::unique_ptr<ModelledMedium> medium_;
};

Result<std::unique_ptr<env::Disk>> open_exactly(env::Env& env, const Spec& spec) {
  return env.open_disk(
      {.path = spec.path, .size = spec.size, .create = spec.size != 0, .direct = spec.direct});
}

// A file that has grown since its text was written keeps its size: whoever resized it may have
// lost power before the new size was written down.
Result<std::unique_ptr<env::Disk>> open_grown(env::Env& env, const Spec& spec) {
  Result<std::unique_ptr<env::Disk>> disk = open_exactly(env, spec);
  if (disk || disk.error() != Errc::kInvalid || spec.size == 0) return disk;
  Result<std::unique_ptr<env::Disk>> as_it_is =
      env.open_disk({.path = spec.path, .direct = spec.direct});
  if (as_it_is && (*as_it_is)->size() > spec.size) return as_it_is;
  return disk;
}

Result<std::unique_ptr<Source>> make_file(env::Env& env, const Spec& spec,
                                          Result<std::unique_ptr<env::Disk>> keeper) {
  if (!keeper) return fail(keeper.error());
  if ((*keeper)->block_size() > spec.block_size) {
    return fail(Errc::kInvalid, "the file needs larger blocks; block size",
                static_cast<int32_t>((*keeper)->block_size()));
  }
  if ((*keeper)->size() == 0 || !is_aligned((*keeper)->size(), spec.block_size)) {
    return fail(Errc::kInvalid, "the file's size is not a multiple of the block size");
  }
  return std::make_unique<FileSource>(env, std::move(*keeper), spec);
}

// Pages that the medium has data of.
std::vector<bool> written_pages(const Source& below, uint32_t page_bytes) {
  std::vector<bool> pages;
  for (const env::Disk::Extent& extent : below.data()) {
    const uint64_t end = (extent.offset + extent.length + page_bytes - 1) / page_bytes;
    if (pages.size() < end) pages.resize(end);
    for (uint64_t page = extent.offset / page_bytes; page < end; ++page) pages[page] = true;
  }
  return pages;
}

Result<std::unique_ptr<Source>> make_memory(env::Env& env, const Spec& spec,
                                            env::MemoryPages pages) {
  Result<std::unique_ptr<MemoryMedium>> medium =
      MemoryMedium::make(env, spec.size, spec.block_size, pages);
  if (!medium) return fail(medium.error());
  return std::make_unique<MemorySource>(std::move(*medium));
}

// Memory of small pages: the first touch of a large one takes longer than flash does.
Result<std::unique_ptr<Source>> make_data(env::Env& env, const Spec& flash) {
  if (flash.path.empty()) return make_memory(env, flash, env::MemoryPages::kSmall);
  Spec file = flash;
  file.kind = Spec::Kind::kFile;
  return make_file(env, file, open_exactly(env, file));
}

Result<std::unique_ptr<Source>> make_flash(env::Env& env, const Spec& spec) {
  if (!spec.flash) return fail(Errc::kInvalid, "nobody filled in the profile of a modelled drive");
  const std::optional<flash::Parameters> parameters = flash::scaled_to(*spec.flash, spec.size);
  if (!parameters) return fail(Errc::kInvalid, "the profile's drive is smaller than the size");
  Result<std::unique_ptr<Source>> below = make_data(env, spec);
  if (!below) return below;
  Result<std::unique_ptr<ModelledMedium>> medium =
      ModelledMedium::make(env, *parameters,
                           {.occupancy = spec.precondition / 100.0,
                            .written = written_pages(**below, parameters->page_bytes)});
  if (!medium) return fail(medium.error());
  return std::make_unique<FlashSource>(std::move(*below), std::move(*medium));
}

}  // namespace

bool is_source_option(std::string_view key) {
  constexpr std::string_view kKeys[] = {"size", "block",        "direct",  "profile",
                                        "file", "precondition", "arbiter", "take-over"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

bool parse_size(std::string_view text, uint64_t& size) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{}) return false;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.empty()) return true;
  constexpr std::string_view kUnits = "KMGT";
  const size_t index = kUnits.find(unit[0] >= 'a' ? static_cast<char>(unit[0] - 32) : unit[0]);
  if (index == std::string_view::npos) return false;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "iB" && rest != "B") return false;
  const unsigned shift = 10 * (static_cast<unsigned>(index) + 1);
  if (size > UINT64_MAX >> shift) return false;
  size <<= shift;
  return true;
}

std::expected<Spec, std::string> Spec::parse(std::string_view text) {
  Spec spec;
  std::string_view rest = text;
  bool options_follow = true;
  if (rest.starts_with("mem:")) {
    rest.remove_prefix(4);
  } else if (rest.starts_with("flash:")) {
    spec.kind = Kind::kFlash;
    rest.remove_prefix(6);
  } else if (rest.starts_with("file:")) {
    spec.kind = Kind::kFile;
    rest.remove_prefix(5);
    const size_t comma = rest.find(',');
    spec.path = rest.substr(0, comma);
    if (spec.path.empty()) {
      return std::unexpected(fmt::format("'{}' names no file: write file:PATH,size=8G", text));
    }
    options_follow = comma != std::string_view::npos;
    rest = options_follow ? rest.substr(comma + 1) : "";
  } else {
    return std::unexpected(
        fmt::format("'{}' is no drive: write mem:size=1G, file:PATH,size=8G or "
                    "flash:profile=laptop-tlc,size=4G",
                    text));
  }
  while (options_follow) {
    const size_t comma = rest.find(',');
    const std::string_view option = rest.substr(0, comma);
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos) {
      return std::unexpected(fmt::format("'{}' in '{}' is not KEY=VALUE", option, text));
    }
    if (auto wrong = set_option(spec, option.substr(0, equals), option.substr(equals + 1))) {
      return std::unexpected(fmt::format("{}, in '{}'", *wrong, text));
    }
    options_follow = comma != std::string_view::npos;
    if (options_follow) rest = rest.substr(comma + 1);
  }
  if (auto lack = find_lack(spec, text)) return std::unexpected(std::move(*lack));
  return spec;
}

std::string Spec::text() const {
  std::string text = "mem:";
  if (kind == Kind::kFile) text = fmt::format("file:{},", path);
  if (kind == Kind::kFlash) {
    text = fmt::format("flash:profile={},", profile);
    if (!path.empty()) text += fmt::format("file={},", path);
  }
  if (size != 0) text += fmt::format("size={},", size);
  text += fmt::format("block={}", block_size);
  if (!direct) text += ",direct=off";
  if (precondition != 0) text += fmt::format(",precondition={}", precondition);
  return text;
}

Result<std::unique_ptr<Source>> Source::make(env::Env& env, const Spec& spec) {
  if (spec.kind == Spec::Kind::kFlash) return make_flash(env, spec);
  if (spec.kind == Spec::Kind::kMemory) {
    return make_memory(env, spec, env::MemoryPages::kLarge);
  }
  return make_file(env, spec, open_grown(env, spec));
}

}  // namespace cairn::drive
