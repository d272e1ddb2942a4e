// SPDX-License-Identifier: Apache-2.0
#include "service/qos/channels.h"

#include <algorithm>
#include <utility>

#include "drive/modelled_drive.h"
#include "env/call.h"
#include "service/common/joint.h"
#include "service/common/trial_drive.h"
#include "service/layout/layout.h"

namespace cairn::drive {

namespace {

struct Part {
  uint32_t first = 0;
  uint32_t count = 0;
};

// Which pages of a drive are on some channels. The channels of pages repeat after a period.
class PagesOfChannels {
 public:
  PagesOfChannels(const std::vector<uint32_t>& channels, Part part) : period_(channels.size()) {
    for (uint64_t page = 0; page < period_; ++page) {
      if (channels[page] >= part.first && channels[page] < part.first + part.count) {
        own_.push_back(page);
      }
    }
    runs_.assign(own_.size(), 1);
    for (size_t i = own_.size(); i-- > 1;) {
      if (own_[i] == own_[i - 1] + 1) runs_[i - 1] = runs_[i] + 1;
    }
  }

  // How many of the first `pages` of the drive.
  uint64_t among(uint64_t pages) const {
    const auto rest = std::ranges::lower_bound(own_, pages % period_) - own_.begin();
    return pages / period_ * own_.size() + static_cast<uint64_t>(rest);
  }
  uint64_t place_of(uint64_t page) const {
    return page / own_.size() * period_ + own_[page % own_.size()];
  }
  // How many from this one on follow each other on the drive, within a period.
  uint64_t run_at(uint64_t page) const { return runs_[page % own_.size()]; }

 private:
  uint64_t period_;
  std::vector<uint64_t> own_;
  std::vector<uint64_t> runs_;
};

class Channels final : public LayoutDrive {
 public:
  // `taken`: where the channels were taken; null: on trial, nowhere.
  Channels(ServiceParts& parts, const ModelledMedium& medium, Part part, ModelledMedium* taken)
      : LayoutDrive(std::move(parts.below)),
        env_(parts.env),
        part_(part),
        channel_count_(medium.channel_count()),
        taken_(taken),
        pages_(medium.channels_of_pages(), part),
        page_blocks_(medium.page_bytes() / below().geometry().block_size) {
    geometry_ = common_geometry(page_blocks_);
    const uint64_t blocks = below().geometry().blocks;
    geometry_.blocks = pages_.among(blocks / page_blocks_) * page_blocks_;
  }

  std::vector<Fact> facts() const override {
    return {{"first_channel", part_.first},
            {"channels", part_.count},
            {"channels_of_drive", channel_count_}};
  }

  task::Task<void> close() override {
    co_await LayoutDrive::close();
    if (taken_ == nullptr) co_return;
    co_await env::call_on(env_, taken_->core(), [this](env::Env&) {
      taken_->give_channels_back(part_.first, part_.count);
    });
  }

 private:
  LegPosition locate(uint64_t block) const override {
    const uint64_t page = block / page_blocks_;
    const uint64_t into = block % page_blocks_;
    return {.leg = 0,
            .block = pages_.place_of(page) * page_blocks_ + into,
            .run = pages_.run_at(page) * page_blocks_ - into};
  }

  env::Env& env_;
  const Part part_;
  const uint32_t channel_count_;
  ModelledMedium* const taken_;
  const PagesOfChannels pages_;
  const uint64_t page_blocks_;
};

// A modelled drive, and whether it is only tried out; null: it is none.
struct Below {
  const ModelledDrive* drive = nullptr;
  bool is_on_trial = false;
};

Below look_below(const Drive& drive) {
  const Drive& layer = without_joint(drive);
  if (const auto* trial = dynamic_cast<const TrialDrive*>(&layer)) {
    return {.drive = look_below(trial->below()).drive, .is_on_trial = true};
  }
  return {.drive = dynamic_cast<const ModelledDrive*>(&layer)};
}

Result<void> check(const ModelledMedium& medium, const Geometry& geometry, Part part) {
  if (uint64_t{part.first} + part.count > medium.channel_count()) {
    return fail(Errc::kInvalid, "first and count go past the drive's channels, of which it has",
                static_cast<int32_t>(medium.channel_count()));
  }
  if (medium.channels_of_pages().empty()) {
    return fail(Errc::kInvalid,
                "this drive writes to whichever channel is least busy: give its profile a spread "
                "that is not dynamic");
  }
  if (medium.page_bytes() % geometry.block_size != 0) {
    return fail(Errc::kInvalid, "blocks must divide a flash page: give the drive a block= for its",
                static_cast<int32_t>(medium.page_bytes()));
  }
  const PagesOfChannels pages(medium.channels_of_pages(), part);
  if (pages.among(geometry.bytes() / medium.page_bytes()) == 0) {
    return fail(Errc::kInvalid, "the drive is too small to have a page on these channels");
  }
  return {};
}

task::Task<Result<std::unique_ptr<Drive>>> open_channels(ServiceParts parts) {
  const Below below = look_below(*parts.below[0]);
  if (below.drive == nullptr) {
    co_return fail(Errc::kInvalid, "only a modelled drive, flash:, has channels");
  }
  ModelledMedium& medium = below.drive->medium();
  const Part part{.first = static_cast<uint32_t>(parts.options.number("first")),
                  .count = static_cast<uint32_t>(parts.options.number("count"))};
  const Result<void> fits = check(medium, parts.below[0]->geometry(), part);
  if (!fits) co_return fail(fits.error());
  if (!below.is_on_trial) {
    const bool is_taken = co_await env::call_on(
        parts.env, medium.core(),
        [&medium, part](env::Env&) { return medium.take_channels(part.first, part.count); });
    if (!is_taken) {
      co_return fail(Errc::kExists,
                     "another has some of these channels: choose others of the drive's",
                     static_cast<int32_t>(medium.channel_count()));
    }
  }
  co_return std::make_unique<Channels>(parts, medium, part, below.is_on_trial ? nullptr : &medium);
}

constexpr uint64_t kChannelsMax = 64;

constexpr ServiceOption kOptions[] = {
    {.key = "first", .default_value = "0", .what = "its first channel", .max = kChannelsMax - 1},
    {.key = "count", .what = "how many channels", .min = 1, .max = kChannelsMax},
};

}  // namespace

constexpr Service kChannels{.name = "channels",
                            .what = "some channels of a modelled drive, beside others on its rest",
                            .example = "channels({}, first=1, count=1)",
                            .leaf_only = "flash:",
                            .options = kOptions,
                            .open = open_channels};

}  // namespace cairn::drive
