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
 * MPI in this process: one thread that receives commands from any JavaScript thread, starts them as non-blocking calls,
 * and responds when they complete. A JavaScript thread that waits for its commands may call MPI itself, which avoids
 * waking two threads. A lock serializes the calls, so that MPI_THREAD_SERIALIZED is sufficient. If MPI provides a lower
 * level, only the progress thread calls MPI.
 */
class Engine {
 public:
  static Engine& instance();

  /** Starts the progress thread on the first call. `spin` is the time for which the thread polls before it sleeps. */
  void start(std::chrono::microseconds spin);
  void post(Command command);
  /**
   * Starts a command in this thread. The response arrives during `drive`, or from the progress thread after `drive` has
   * given up.
   */
  void perform(Command command);
  /**
   * Calls MPI in this thread until `client` has responses: polls for `spin`, then leaves polling to the progress thread
   * and sleeps for `slice`.
   */
  void drive(Client& client, std::chrono::microseconds spin, std::chrono::microseconds slice);
  /**
   * Removes an ending JavaScript thread. If MPI still works on the memory of the thread, MPI is never called again, so
   * that later calls do not access this memory. MPI_Finalize is called neither here nor at exit, so that launchers
   * treat a process that dies as failed.
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

  /** Lock of the thread that calls MPI. Guards all following members. */
  std::mutex turn_;
  bool initialized_ = false;
  bool finalized_ = false;
  bool stopNow_ = false;
  int tagMask_ = 0;
  Reductions reductions_;
  std::deque<MPI_Comm> communicators_;
  std::vector<double> world_;
  std::vector<MPI_Request> requests_;
  /** Operation of each MPI request. */
  std::vector<std::shared_ptr<Operation>> owners_;
  std::vector<Awaited> awaited_;
  /** Whether a message was left with MPI because it did not match. */
  bool refusedMessage_ = false;
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
  /** Number of operations without a response. */
  size_t active_ = 0;
  /** Total bytes of the operations without a response. */
  size_t activeBytes_ = 0;
  /** Number of active operations that a caller polls for. */
  size_t driven_ = 0;
  /** Whether a caller has stopped polling, so that the progress thread also polls for the caller's operations. */
  bool handedOver_ = false;
  /** Whether the last command came from a thread that calls MPI itself. */
  bool callersDrive_ = false;
  Clock::time_point nextDeadline_ = Clock::time_point::max();
  /** Time of the last progress. Used only by the progress thread. */
  Clock::time_point lastMove_;
  /** Next sleep between polls. Used only by the progress thread. */
  std::chrono::microseconds sleep_{0};
};

}  // namespace skein
