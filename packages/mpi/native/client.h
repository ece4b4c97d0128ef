#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "operation.h"

namespace skein {

/**
 * Where one JavaScript thread takes its answers. The progress thread puts them; `wake` has that thread called once however many
 * answers wait.
 */
struct Client {
  virtual ~Client() = default;

  void put(Completion completion) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (closed_) return;
    answers_.push_back(std::move(completion));
    if (!woken_) {
      woken_ = true;
      wake();
    }
  }

  std::vector<Completion> take() {
    std::lock_guard<std::mutex> guard(mutex_);
    woken_ = false;
    return std::exchange(answers_, {});
  }

  /** After this, `wake` is not called. */
  void close() {
    std::lock_guard<std::mutex> guard(mutex_);
    closed_ = true;
  }

 protected:
  virtual void wake() = 0;

 private:
  std::mutex mutex_;
  std::vector<Completion> answers_;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace skein
