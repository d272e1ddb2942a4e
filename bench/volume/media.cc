// SPDX-License-Identifier: Apache-2.0
#include "bench/volume/media.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "drive/modelled_drive.h"
#include "service/common/label.h"

namespace cairn::bench {

using drive::Drive;
using drive::Request;
using task::Task;

namespace {

constexpr uint32_t kBlock = 4096;
constexpr uint64_t kKeptBlocks = 16;  // a label and more
static_assert(kKeptBlocks >= drive::kLabelBlocks);
constexpr int kFiller = 0x5a;  // no zeroes, which whoever copies would leave out

std::string uri_of(size_t index) { return fmt::format("drive-{:04}", index); }

// Keeps its first blocks in `kept`; in the others each byte reads as the filler.
class BlankDrive final : public Drive {
 public:
  BlankDrive(uint64_t bytes, MutableBytes kept, int filler) : kept_(kept), filler_(filler) {
    geometry_.blocks = bytes / kBlock;
    geometry_.block_size = kBlock;
    geometry_.volatile_cache = false;
  }
  const drive::Geometry& geometry() const override { return geometry_; }

 private:
  void start(drive::DriveOp& op) override {
    const Request& request = op.request;
    uint64_t at = request.lba.value() * kBlock;
    for (const MutableBytes piece : op.data()) {
      const uint64_t have = at < kept_.size() ? std::min(kept_.size() - at, piece.size()) : 0;
      if (request.kind == Request::Kind::kRead) {
        std::memset(piece.data(), filler_, piece.size());
        if (have > 0) std::memcpy(piece.data(), kept_.data() + at, have);
      } else if (request.kind == Request::Kind::kWrite && have > 0) {
        std::memcpy(kept_.data() + at, piece.data(), have);
      }
      at += piece.size();
    }
    op.complete({});
  }
  void cancel(drive::DriveOp&) override {}  // none is ever in flight

  MutableBytes kept_;
  int filler_;
  drive::Geometry geometry_;
};

class BlankSsd final : public drive::Source {
 public:
  BlankSsd(uint64_t bytes, std::unique_ptr<drive::ModelledMedium> medium)
      : bytes_(bytes), first_(kKeptBlocks * kBlock), medium_(std::move(medium)) {}
  Result<std::unique_ptr<Drive>> open(env::Env& env) override {
    return drive::ModelledDrive::make(env, std::make_unique<BlankDrive>(bytes_, first_, kFiller),
                                      *medium_);
  }
  const drive::ModelledMedium* modelled() const override { return medium_.get(); }

 private:
  const uint64_t bytes_;
  std::vector<std::byte> first_;
  std::unique_ptr<drive::ModelledMedium> medium_;
};

}  // namespace

Result<std::unique_ptr<drive::Source>> make_blank_ssd(env::Env& env, uint64_t bytes,
                                                      const flash::Parameters& parameters) {
  Result<std::unique_ptr<drive::ModelledMedium>> medium =
      drive::ModelledMedium::make(env, parameters);
  if (!medium) return fail(medium.error());
  return std::make_unique<BlankSsd>(bytes, std::move(*medium));
}

Result<std::unique_ptr<SpecMedia>> SpecMedia::make(env::Env& env, size_t drives,
                                                   const drive::Spec& spec) {
  std::unique_ptr<SpecMedia> media(new SpecMedia(env));
  for (size_t i = 0; i < drives; ++i) {
    Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, spec);
    if (!source) return fail(source.error());
    media->sources_.emplace(uri_of(i), std::move(*source));
  }
  return media;
}

std::vector<std::string> SpecMedia::uris() const {
  std::vector<std::string> all;
  all.reserve(sources_.size());
  for (const auto& [uri, source] : sources_) all.push_back(uri);
  return all;
}

Task<Result<std::unique_ptr<Drive>>> SpecMedia::open(std::string uri, std::string /*host*/,
                                                     task::CancelToken /*token*/) {
  const auto found = sources_.find(uri);
  if (found == sources_.end()) co_return fail(Errc::kNotFound, "there is no such drive");
  co_return found->second->open(env_);
}

Task<void> SpecMedia::close(env::Env& env) {
  for (auto& [uri, source] : sources_) co_await source->close(env);
}

BlankMedia::BlankMedia(size_t drives, uint64_t bytes, int filler) : bytes_(bytes), filler_(filler) {
  for (size_t i = 0; i < drives; ++i) firsts_[uri_of(i)].resize(kKeptBlocks * kBlock);
}

std::vector<std::string> BlankMedia::uris() const {
  std::vector<std::string> all;
  all.reserve(firsts_.size());
  for (const auto& [uri, first] : firsts_) all.push_back(uri);
  return all;
}

Task<Result<std::unique_ptr<Drive>>> BlankMedia::open(std::string uri, std::string /*host*/,
                                                      task::CancelToken /*token*/) {
  const auto found = firsts_.find(uri);
  if (found == firsts_.end()) co_return fail(Errc::kNotFound, "there is no such drive");
  co_return std::make_unique<BlankDrive>(bytes_, found->second, filler_);
}

Task<void> BlankMedia::close(env::Env& /*env*/) { co_return; }

Result<std::unique_ptr<FlashMedia>> FlashMedia::make(env::Env& env, size_t drives, uint64_t bytes,
                                                     const flash::Parameters& parameters) {
  std::unique_ptr<FlashMedia> media(new FlashMedia(env, drives, bytes));
  for (const std::string& uri : media->uris()) {
    Result<std::unique_ptr<drive::ModelledMedium>> model =
        drive::ModelledMedium::make(env, parameters);
    if (!model) return fail(model.error());
    media->models_.emplace(uri, std::move(*model));
  }
  return media;
}

Task<Result<std::unique_ptr<Drive>>> FlashMedia::open(std::string uri, std::string host,
                                                      task::CancelToken token) {
  Result<std::unique_ptr<Drive>> below = co_await BlankMedia::open(uri, std::move(host), token);
  if (!below) co_return below;
  co_return drive::ModelledDrive::make(env_, std::move(*below), *models_.at(uri));
}

}  // namespace cairn::bench
