#include "engine.h"

#include <sched.h>

#include <algorithm>
#include <functional>

#include "answers.h"

namespace skein {
namespace {

// Minimum sleep between polls while no operation makes progress. If a peer computes for a second, polling takes one
// percent of a core.
constexpr std::chrono::microseconds shortestSleep{50};
constexpr std::chrono::microseconds longestSleep{200};
// Without kernel-assisted copies MPI moves bytes only during calls, so polling continues for the time that a slow link
// (250 MB/s) would need.
constexpr size_t bytesPerSpinMicrosecond = 250;
// Number of polls between yields. A poll takes half a microsecond, and yielding a core that no other thread needs takes
// as long. A thread that shares the core waits for this many polls.
constexpr unsigned looksPerYield = 8;
// Maximum time that an ending thread waits for the progress thread, which may be inside MPI_Init.
constexpr std::chrono::seconds leaveLimit{2};

}  // namespace

Engine& Engine::instance() {
  static Engine* engine = new Engine(); // Never destroyed: at exit the thread may still be inside MPI.
  return *engine;
}

void Engine::start(std::chrono::microseconds spin) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (thread_.joinable() || stopped_) return;
  spin_ = spin;
  thread_ = std::thread([this] { run(); });
}

void Engine::post(Command command) {
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!stopped_) {
      posted_.push_back(std::move(command));
      hasPosted_.store(true, std::memory_order_release);
      changed_.notify_all();
      return;
    }
  }
  command.client->put(refusal(command, Outcome::stopped, "MPI is no longer called in this process"));
}

void Engine::leave(const std::shared_ptr<Client>& client) {
  client->close();
  std::unique_lock<std::mutex> lock(mutex_);
  if (!thread_.joinable() || stopped_) return;
  leaving_.push_back(client);
  hasPosted_.store(true, std::memory_order_release);
  changed_.notify_all();
  changed_.wait_for(lock, leaveLimit, [&] { return std::find(leaving_.begin(), leaving_.end(), client) == leaving_.end(); });
}

void Engine::run() {
  lastMove_ = Clock::now();
  for (;;) {
    bool moved = false;
    size_t active = 0;
    size_t bytes = 0;
    bool callersDrive = false;
    {
      std::lock_guard<std::mutex> turn(turn_);
      moved = takePosted();
      if (stopNow_) return stop();
      moved |= advance();
      active = handedOver_ ? active_ : active_ - driven_;
      bytes = active == 0 ? 0 : activeBytes_;
      callersDrive = callersDrive_;
    }
    // If no operations are active, polling would only take the lock, and usually the core, from a caller that calls MPI
    // itself.
    if (active == 0 && callersDrive) sleepUntilPosted();
    else pause(moved, active, bytes);
  }
}

/**
 * Polls all active operations one time.
 *
 * @returns whether any operation made progress.
 */
bool Engine::advance() {
  bool moved = probe();
  moved |= test();
  if (nextDeadline_ != Clock::time_point::max() && Clock::now() >= nextDeadline_) expire();
  return moved;
}

void Engine::wakeThread() {
  std::lock_guard<std::mutex> guard(mutex_);
  hasPosted_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Engine::perform(Command command) {
  std::lock_guard<std::mutex> turn(turn_);
  if (stopNow_) return command.client->put(refusal(command, Outcome::stopped, "MPI is no longer called in this process"));
  callersDrive_ = true;
  begin(std::move(command));
}

void Engine::drive(Client& client, std::chrono::microseconds spin, std::chrono::microseconds slice) {
  auto until = Clock::now() + spin;
  for (unsigned looks = 1;; looks++) {
    bool moved = false;
    {
      std::lock_guard<std::mutex> turn(turn_);
      handedOver_ = false;
      if (!stopNow_) moved = advance();
    }
    if (client.hasAnswers()) return;
    if (!moved && looks % looksPerYield != 0) continue;
    const auto now = Clock::now();
    if (moved) until = now + spin;
    if (now >= until) break;
    if (!moved) sched_yield();
  }
  {
    std::lock_guard<std::mutex> turn(turn_);
    handedOver_ = true;
  }
  wakeThread();
  client.waitForAnswers(slice);
}

/** Starts posted commands. Returns whether there were any commands. */
bool Engine::takePosted() {
  if (!hasPosted_.load(std::memory_order_acquire)) return false;
  std::vector<Command> commands;
  std::vector<std::shared_ptr<Client>> leaving;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    commands.swap(posted_);
    leaving = leaving_;
    hasPosted_.store(false, std::memory_order_release);
  }
  if (!commands.empty()) callersDrive_ = false;
  for (Command& command : commands) begin(std::move(command));
  if (!leaving.empty()) release(leaving);
  return true;
}

void Engine::release(const std::vector<std::shared_ptr<Client>>& leaving) {
  const auto isLeaving = [&](const std::shared_ptr<Client>& client) { return std::find(leaving.begin(), leaving.end(), client) != leaving.end(); };
  for (const auto& operation : owners_) stopNow_ |= isLeaving(operation->command.client);
  if (stopNow_) return; // stop() releases them.
  for (Awaited& awaited : awaited_) {
    if (isLeaving(awaited.operation->command.client)) finish(*awaited.operation); // The response is not delivered.
  }
  dropAnswered();
  std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& client : leaving) leaving_.erase(std::remove(leaving_.begin(), leaving_.end(), client), leaving_.end());
  changed_.notify_all();
}

/** Stops calling MPI permanently, and responds to all waiting commands. */
void Engine::stop() {
  const char* reason = "a thread ended while MPI worked on its memory, so MPI is no longer called in this process";
  const auto refuse = [&](Operation& operation) {
    operation.answer = refusal(operation.command, Outcome::stopped, reason);
    finish(operation);
  };
  for (const auto& operation : owners_) refuse(*operation);
  for (const Awaited& awaited : awaited_) refuse(*awaited.operation);
  std::lock_guard<std::mutex> guard(mutex_);
  stopped_ = true;
  for (const Command& command : posted_) command.client->put(refusal(command, Outcome::stopped, reason));
  posted_.clear();
  leaving_.clear();
  changed_.notify_all();
}

/**
 * Yields the processor between polls: spins with yields while an event is likely soon, then sleeps; without active
 * operations, until a command is posted.
 */
void Engine::pause(bool moved, size_t active, size_t activeBytes) {
  const auto now = Clock::now();
  if (moved) {
    lastMove_ = now;
    sleep_ = shortestSleep;
  }
  const auto budget = spin_ + std::chrono::microseconds(activeBytes / bytesPerSpinMicrosecond);
  if (now - lastMove_ < budget) {
    sched_yield();
    return;
  }
  if (active == 0) return sleepUntilPosted();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, sleep_, [this] { return hasPosted_.load(std::memory_order_relaxed); });
  sleep_ = std::min(sleep_ * 2, longestSleep);
}

void Engine::sleepUntilPosted() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return hasPosted_.load(std::memory_order_relaxed); });
  lastMove_ = Clock::now();
}

/**
 * Probes for awaited messages, and receives matching messages. MPI's own check is too late: Open MPI 4.1 writes beyond
 * the memory of a receive if the message is longer.
 */
bool Engine::probe() {
  bool moved = false;
  size_t kept = 0;
  for (size_t i = 0; i < awaited_.size(); i++) {
    Awaited& awaited = awaited_[i];
    Operation& operation = *awaited.operation;
    const auto isBefore = [&](const Awaited& other) {
      return other.peer == awaited.peer && other.operation->command.communicator == operation.command.communicator;
    };
    bool arrived = operation.answered;
    // A message belongs to the oldest receive from its sender, even if the message arrived after that receive was
    // probed.
    if (!arrived && std::none_of(awaited_.begin(), awaited_.begin() + static_cast<std::ptrdiff_t>(kept), isBefore)) {
      const int code = receive(awaited, &arrived);
      if (code != MPI_SUCCESS) describeFailure(operation.answer, "MPI_Improbe or MPI_Imrecv", code);
      if (operation.answer.outcome != Outcome::done) finish(operation);
    }
    if (arrived) moved = true;
    else if (kept++ != i) awaited_[kept - 1] = std::move(awaited);
  }
  awaited_.resize(kept);
  return moved;
}

/**
 * Receives a message if it has arrived.
 *
 * @returns error code of MPI.
 */
int Engine::receive(Awaited& awaited, bool* arrived) {
  const Command& command = awaited.operation->command;
  const MPI_Comm communicator = communicators_[static_cast<size_t>(command.communicator)];
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int flag = 0;
  // Any tag: a message of another collective is received and reported. Otherwise the rank would wait forever.
  int code = MPI_Improbe(awaited.peer, MPI_ANY_TAG, communicator, &flag, &message, &status);
  *arrived = flag != 0 || code != MPI_SUCCESS;
  if (flag == 0 || code != MPI_SUCCESS) return code;
  checkArrival(awaited.operation->answer, awaited, status);
  if (awaited.operation->answer.outcome != Outcome::done) {
    refusedMessage_ = true;
    return code;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  code = MPI_Imrecv(awaited.target, static_cast<int>(awaited.bytes), MPI_BYTE, &message, &request);
  if (code != MPI_SUCCESS) return code;
  requests_.push_back(request);
  owners_.push_back(awaited.operation);
  return code;
}

/** Tests all requests with one MPI call. */
bool Engine::test() {
  if (active_ == 0 || requests_.empty()) return false;
  const int count = static_cast<int>(requests_.size());
  finished_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int done = 0;
  const int code = MPI_Testsome(count, requests_.data(), &done, finished_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    for (const auto& operation : owners_) finishPart(operation, code);
    requests_.clear(); // MPI does not report which requests are still valid.
    owners_.clear();
    return true;
  }
  if (done == MPI_UNDEFINED || done == 0) return false;
  std::vector<std::pair<std::shared_ptr<Operation>, int>> ended;
  for (int i = 0; i < done; i++) ended.emplace_back(owners_[static_cast<size_t>(finished_[i])], code == MPI_SUCCESS ? code : statuses_[i].MPI_ERROR);
  std::sort(finished_.begin(), finished_.begin() + done, std::greater<int>());
  for (int i = 0; i < done; i++) { // From the back, so that the element that fills a gap is not itself finished.
    const auto gap = static_cast<size_t>(finished_[i]);
    requests_[gap] = requests_.back();
    owners_[gap] = std::move(owners_.back());
    requests_.pop_back();
    owners_.pop_back();
  }
  for (const auto& [operation, result] : ended) finishPart(operation, result);
  return true;
}

void Engine::finishPart(const std::shared_ptr<Operation>& operation, int code) {
  if (code != MPI_SUCCESS) describeFailure(operation->answer, "the call", code);
  operation->partsLeft -= 1;
  if (operation->partsLeft == 0 && operation->agreeing) {
    operation->agreeing = false;
    if (operation->answer.outcome == Outcome::done) checkAgreement(*operation);
    if (operation->answer.outcome == Outcome::done && !operation->answered) return beginOrFail(operation);
  }
  // A failure is reported immediately, because the other parts may never complete.
  if (operation->partsLeft == 0 || operation->answer.outcome != Outcome::done) finish(*operation);
}

void Engine::finish(Operation& operation) {
  if (operation.answered) return;
  operation.answered = true;
  active_ -= 1;
  if (operation.command.byCaller) driven_ -= 1;
  activeBytes_ -= bytesUnderWay(operation.command);
  if (operation.command.kind == Kind::duplicate && operation.answer.outcome == Outcome::done) {
    MPI_Comm_set_errhandler(operation.duplicated, MPI_ERRORS_RETURN);
    operation.answer.values = {static_cast<double>(communicators_.size())};
    communicators_.push_back(operation.duplicated);
  }
  operation.command.client->put(std::move(operation.answer));
}

/**
 * Responds to operations whose deadline has passed. Their messages are no longer awaited; their requests stay with MPI,
 * which may still write to their memory.
 */
void Engine::expire() {
  const auto now = Clock::now();
  nextDeadline_ = Clock::time_point::max();
  const auto look = [&](Operation& operation, int missing) {
    if (operation.answered) return;
    if (operation.deadline > now) {
      nextDeadline_ = std::min(nextDeadline_, operation.deadline);
      return;
    }
    operation.answer = refusal(operation.command, Outcome::timeout, "");
    operation.answer.values = {static_cast<double>(missing)};
    finish(operation);
  };
  for (const Awaited& awaited : awaited_) look(*awaited.operation, awaited.peer);
  for (const auto& operation : owners_) look(*operation, operation->command.peer);
  dropAnswered();
}

/** Removes awaited messages whose operations already have a response. */
void Engine::dropAnswered() {
  awaited_.erase(std::remove_if(awaited_.begin(), awaited_.end(), [](const Awaited& one) { return one.operation->answered; }), awaited_.end());
}

}  // namespace skein
