// SPDX-License-Identifier: Apache-2.0
// Label: what a service that keeps something of its own writes on the drive below it, so that the
// drive is known again, by this service and no other, after any crash.
//
//   block 0, 1    the label, newest in block (generation modulo 2)
//
// A label says which service made it, in which version of its format, an id, who has it open
// (claim.h), what the drive stands on, if it matters, and a body of the service's own
// (label_format.h). One without a body says that a drive is being made: what it holds does not
// count, and whoever opens it begins anew. A block is written whole or not at all.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/label_format.h"
#include "task/task.h"

namespace cairn::drive {

// The newest label on a drive, be it finished or not; none: both blocks are blank. One damaged
// block beside a whole one is a write that a crash tore. Nothing is written. Errors as
// decode_label, and those of the drive; kInvalid also when the drive has become smaller than the
// label says.
task::Task<Result<std::optional<Label>>> read_label(env::Env& env, Drive& drive, LabelKind kind,
                                                    task::CancelToken token = {});

// On what terms a service takes a drive that has no label of its own.
struct LabelTerms {
  bool may_format = false;  // though it is not blank (ServiceParts::may_format)
  int32_t number = 1;       // of the drive among those that the service was given
};
// What a service opens with: its label; none: the drive is to be made, begin_label() and
// finish_label(). Nothing is written. Errors as read_label; not_blank() when it holds something
// else, and that may not be lost (blank.h).
task::Task<Result<std::optional<Label>>> find_label(env::Env& env, Drive& drive, LabelKind kind,
                                                    LabelTerms terms);

// Whether the newest label on the drive is still of this id and writer (claim.h), or else another
// opening has put its own there. kCorrupt: there is no label of that id any more.
task::Task<Result<bool>> has_writer(env::Env& env, Drive& drive, const Label& label,
                                    task::CancelToken token = {});
// kDenied: another opening has the drive now; it has written what this one had read before.
Error taken_over();
Error changed_meanwhile();
// Draws a writer and writes the label with it, once nothing else keeps the drive from being opened.
// changed_meanwhile(), and nothing was written: it is not the newest any more.
task::Task<Result<void>> claim_label(env::Env& env, Drive& drive, LabelKind kind, Label& label);

// A label of a new id and generation 0, for this drive.
Label new_label(env::Env& env, const Drive& drive);
// Counts the generation up and writes the label durably. A failure leaves the older one in force,
// or this one: write it again. One at a time. kDenied: another opening
// has claimed it since.
task::Task<Result<void>> write_label(env::Env& env, Drive& drive, LabelKind kind, Label& label);
// The same for whoever has looked by itself whether the drive is still its own.
task::Task<Result<void>> put_label(env::Env& env, Drive& drive, LabelKind kind, Label& label);

// Says, in both blocks, that the drive is being made: before anything else is written to it, so
// that a crash leaves a drive that opens. Of a new label.
task::Task<Result<void>> begin_label(env::Env& env, Drive& drive, LabelKind kind, Label& label);
// And that it is made, with all it is to hold on it: in both blocks, so that no damage to one shows
// a drive that is being made.
task::Task<Result<void>> finish_label(env::Env& env, Drive& drive, LabelKind kind, Label& label);

}  // namespace cairn::drive
