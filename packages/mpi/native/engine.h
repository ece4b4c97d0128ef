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
 * MPI in this process: one thread that takes commands of any JavaScript thread, starts them as non-blocking calls, and answers as they
 * finish. A JavaScript thread that waits for its commands anyway may call MPI itself meanwhile, which saves waking two threads. Calls
 * take turns, so that MPI_THREAD_SERIALIZED is enough; where MPI offers less, nobody but the thread calls it.
 */
class Engine {
 public:
  static Engine& instance();

  /** Start the thread, once. `spin` is how long it looks before it sleeps. */
  void start(std::chrono::microseconds spin);
  void post(Command command);
  /** Start a command in this thread. The answer comes by `drive`, or by the progress thread once `drive` has given up. */
  void perform(Command command);
  /** Call MPI in this thread until `client` has answers: look for `spin`, then leave it to the progress thread and sleep for `slice`. */
  void drive(Client& client, std::chrono::microseconds spin, std::chrono::microseconds slice);
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

  bool advance();
  void wakeThread();
  void begin(Command command);
  void beginOrFail(const std::shared_ptr<Operation>& operation);
  int beginExchange(const std::shared_ptr<Operation>& operation);
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
  void pause(bool moved, size_t active, size_t activeBytes);
  void sleepUntilPosted();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> posted_;
  std::vector<std::shared_ptr<Client>> leaving_;
  std::atomic<bool> hasPosted_{false};
  bool stopped_ = false;
  std::thread thread_;
  std::chrono::microseconds spin_{0};

  /** Held by whoever calls MPI; it guards all that follows. */
  std::mutex turn_;
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
  /** Those of them that a caller looks for. */
  size_t driven_ = 0;
  /** A caller has given up looking: the thread looks for them, too. */
  bool handedOver_ = false;
  /** The last command came from a thread that calls MPI itself. */
  bool callersDrive_ = false;
  Clock::time_point nextDeadline_ = Clock::time_point::max();
  /** The thread's own, as is `sleep_`. */
  Clock::time_point lastMove_;
  std::chrono::microseconds sleep_{0};
};

}  // namespace skein
