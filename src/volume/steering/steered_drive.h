// SPDX-License-Identifier: Apache-2.0
// SteeredDrive: a drive of a box, in front of which reads and writes may have to wait.
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drive/drive.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/task.h"
#include "volume/steering/steering.h"

namespace cairn::volume {

// Changes nothing about requests. On the core of its steering.
class SteeredDrive final : public drive::Drive, private drive::Relay {
 public:
  SteeredDrive(env::Env& env, Steering& steering, Route& route, std::unique_ptr<drive::Drive> below)
      : env_(env), steering_(steering), route_(route), below_(std::move(below)) {}

  const drive::Geometry& geometry() const override { return below_->geometry(); }
  drive::Extent extent_at(Lba lba, uint64_t max) const override {
    return below_->extent_at(lba, max);
  }
  std::vector<drive::Fact> facts() const override { return below_->facts(); }
  std::vector<drive::Concern> concerns() const override { return below_->concerns(); }
  std::vector<drive::Job> jobs() const override { return below_->jobs(); }
  drive::Incarnation incarnation() const override { return below_->incarnation(); }
  // Where both are steered, those below are asked.
  bool can_replicate_to(const drive::Drive& other) const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override {
    return below_->tell(std::move(args));
  }
  Result<std::unique_ptr<drive::Drive>> open_view(std::string_view name) override {
    return below_->open_view(name);
  }
  task::Task<Result<void>> resize(uint64_t blocks) override { return below_->resize(blocks); }
  task::Task<void> close() override;

 private:
  friend class Steering;

  void start(drive::DriveOp& op) override;
  void cancel(drive::DriveOp& op) override;
  bool run_now(const drive::Request& request, std::span<const MutableBytes> data,
               Result<void>& done) override;
  void relayed(drive::DriveOp& op, const Result<void>& done) override;

  static bool is_steered(const drive::Request& request) {
    using Kind = drive::Request::Kind;
    return request.kind == Kind::kRead || request.kind == Kind::kWrite;
  }
  Steering::Io io_of(const drive::Request& request) const;
  // It has its room.
  void send(drive::DriveOp& op, Time now);
  task::Task<void> run(drive::DriveOp& op, Time began);

  env::Env& env_;
  Steering& steering_;
  Route& route_;
  std::unique_ptr<drive::Drive> below_;
  // Requests in a row that the drive below did not do at once; one of a box never does.
  uint32_t refused_now_ = 0;
  task::Gate gate_;
};

}  // namespace cairn::volume
