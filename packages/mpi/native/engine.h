#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client.h"
#include "operation.h"
#include "reductions.h"

namespace skein {

/**
 * The one thread of a process that calls MPI, from MPI_Init to MPI_Finalize, so that MPI_THREAD_FUNNELED is enough. Takes commands of
 * any JavaScript thread, starts them as non-blocking calls, and answers as they finish.
 */
class Engine {
 public:
  static Engine& instance();

  /** Start the thread, once. `spin` is how long it looks before it sleeps. */
  void start(std::chrono::microseconds spin);
  void post(Command command);
  /**
   * Forget a JavaScript thread that ends. If MPI still works on its memory, MPI is never called again: no call, no access. Neither
   * here nor at exit is MPI_Finalize called for anybody: a process that dies says nothing.
   */
  void leave(const std::shared_ptr<Client>& client);

 private:
  void run();
  bool takePosted();
  void release(const std::vector<std::shared_ptr<Client>>& leaving);
  void stop();

  void begin(Command command);
  void beginOrFail(const std::shared_ptr<Operation>& operation);
  int beginParts(const std::shared_ptr<Operation>& operation, const char** call);
  void initialize(const Command& command);
  void finalize(const Command& command);

  bool probe();
  int receive(Awaited& awaited, bool* arrived);
  bool test();
  void finishPart(const std::shared_ptr<Operation>& operation, int code);
  void finish(Operation& operation);
  void expire();
  void dropAnswered();
  void pause(bool moved);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> posted_;
  std::vector<std::shared_ptr<Client>> leaving_;
  std::atomic<bool> hasPosted_{false};
  bool stopped_ = false;
  std::thread thread_;
  std::chrono::microseconds spin_{0};

  // All that follows belongs to the thread.
  bool initialized_ = false;
  bool finalized_ = false;
  bool stopNow_ = false;
  int tagMask_ = 0;
  Reductions reductions_;
  std::deque<MPI_Comm> communicators_;
  std::vector<double> world_;
  std::vector<MPI_Request> requests_;
  /** Whose part each request is. */
  std::vector<std::shared_ptr<Operation>> owners_;
  std::vector<Awaited> awaited_;
  /** A message was left with MPI because it is not the one that was to come. */
  bool refusedMessage_ = false;
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
  /** Operations, and bytes of them, that somebody waits for. */
  size_t active_ = 0;
  size_t activeBytes_ = 0;
  Clock::time_point nextDeadline_ = Clock::time_point::max();
  Clock::time_point lastMove_;
  std::chrono::microseconds sleep_{0};
};

}  // namespace skein
