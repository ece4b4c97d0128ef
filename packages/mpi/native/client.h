#pragma once

#include <chrono>
#include <condition_variable>
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
    arrived_.notify_all();
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

  bool hasAnswers() {
    std::lock_guard<std::mutex> guard(mutex_);
    return !answers_.empty();
  }

  /** Sleep until there are answers, or for so long. */
  void waitForAnswers(std::chrono::microseconds longest) {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait_for(lock, longest, [this] { return !answers_.empty(); });
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
  std::condition_variable arrived_;
  std::vector<Completion> answers_;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace skein
