// SPDX-License-Identifier: Apache-2.0
// docs/guide.md#the-first-step and elsewhere/docs/other.md
#pragma once
