#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "operation.h"

namespace skein {

/**
 * Queue of responses for one JavaScript thread. The progress thread adds responses. `wake` is called one time per
 * batch, and makes the JavaScript thread fetch the batch.
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

  /** Sleeps until responses are available, at most for `longest`. */
  void waitForAnswers(std::chrono::microseconds longest) {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait_for(lock, longest, [this] { return !answers_.empty(); });
  }

  /** Closes the queue. `wake` is not called after this call. */
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
