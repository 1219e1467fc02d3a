// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace trainer {

// What a training may be asked for in its midst.
struct Requests {
  bool stop = false;   // with a checkpoint
  bool save = false;   // a checkpoint, and to go on
  bool pause = false;  // until nobody asks for it any more
  bool evaluate = false;
};

}  // namespace trainer
