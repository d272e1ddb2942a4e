// SPDX-License-Identifier: Apache-2.0
#include "drive/modelled_drive.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::drive {

namespace {

// What the drive notes in an operation while it has it.
struct Note {
  uint32_t cookie;
  bool passed_on;
};

Note note_of(const DriveOp& op) {
  Note note;
  std::memcpy(&note, op.scratch, sizeof note);
  return note;
}

void set_note(DriveOp& op, Note note) { std::memcpy(op.scratch, &note, sizeof note); }

flash::Op model_op(Request::Kind kind) {
  switch (kind) {
    case Request::Kind::kRead:
    case Request::Kind::kCompare:
      return flash::Op::kRead;
    case Request::Kind::kWrite:
    case Request::Kind::kCompareAndWrite:
      return flash::Op::kWrite;
    case Request::Kind::kDiscard:
    case Request::Kind::kWriteZeroes:  // drives unmap instead of writing zeroes
      return flash::Op::kTrim;
    case Request::Kind::kFlush:
      return flash::Op::kFlush;
  }
  return flash::Op::kFlush;
}

}  // namespace

Result<std::unique_ptr<ModelledDrive>> ModelledDrive::make(env::Env& env,
                                                           std::unique_ptr<Drive> below,
                                                           const flash::Parameters& parameters) {
  if (flash::check(parameters)) return fail(Errc::kInvalid, "parameters of a modelled drive");
  std::unique_ptr<ModelledDrive> drive(new ModelledDrive(env, std::move(below), parameters));
  const uint64_t modelled = drive->model_.domains()[0].logical_sectors * flash::kSectorBytes;
  if (drive->geometry().bytes() > modelled) {
    return fail(Errc::kInvalid, "a drive larger than its model");
  }
  return drive;
}

ModelledDrive::ModelledDrive(env::Env& env, std::unique_ptr<Drive> below,
                             const flash::Parameters& parameters)
    : env_(env), below_(std::move(below)), model_(parameters), epoch_(env.now()), wake_(*this) {}

void ModelledDrive::start(DriveOp& op) {
  pump();
  uint32_t cookie = static_cast<uint32_t>(waiting_.size());
  if (free_.empty()) {
    waiting_.push_back(nullptr);
  } else {
    cookie = free_.back();
    free_.pop_back();
  }
  waiting_[cookie] = &op;
  set_note(op, {.cookie = cookie, .passed_on = false});
  const uint64_t sectors_per_block = geometry().block_size / flash::kSectorBytes;
  const uint64_t sectors = op.request.blocks * sectors_per_block;
  const flash::Op kind = sectors == 0 ? flash::Op::kFlush : model_op(op.request.kind);
  model_.submit({.op = kind,
                 .lba = op.request.lba.value() * sectors_per_block,
                 .sectors = static_cast<uint32_t>(std::min<uint64_t>(sectors, UINT32_MAX)),
                 .cookie = cookie},
                model_now());
  pump();
}

// The model works on what was asked; only the one who asked goes away. Below, the token ends it.
void ModelledDrive::cancel(DriveOp& op) {
  const Note note = note_of(op);
  if (note.passed_on) return;
  waiting_[note.cookie] = nullptr;
  op.complete(op.cancelled());
}

void ModelledDrive::pump() {
  env_.disarm(wake_);
  model_.advance(model_now(), *this);
  if (model_.next_event() != flash::kNever) {
    env_.arm(wake_, epoch_ + Duration{model_.next_event()});
  }
}

void ModelledDrive::completed(const flash::Completion& completion) {
  const auto cookie = static_cast<uint32_t>(completion.cookie);
  DriveOp* op = std::exchange(waiting_[cookie], nullptr);
  free_.push_back(cookie);
  if (op == nullptr) return;
  lateness_.record(static_cast<uint64_t>(std::max<int64_t>(0, model_now() - completion.done)));
  set_note(*op, {.cookie = cookie, .passed_on = true});
  gate_.spawn(run(*op));
}

task::Task<void> ModelledDrive::run(DriveOp& op) {
  const Result<void> done = co_await below_->submit(op.request, op.data(), op.second(), op.token());
  op.complete(done);
}

task::Task<void> ModelledDrive::close() {
  env_.disarm(wake_);
  co_await gate_.close();
  co_await below_->close();
}

}  // namespace cairn::drive
