#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi-headers.h"

namespace skein {

using Clock = std::chrono::steady_clock;

// The order of `kinds` in src/addon.ts.
enum class Kind : int {
  initialize,
  duplicate,
  finalize,
  abort,
  send,
  receive,
  allReduce,
  reduceScatter,
  allGather,
  allToAll,
  broadcast,
  reduce,
  barrier,
  exchange,
};

// The order of `outcomes` in src/addon.ts.
enum class Outcome : int { done, failed, mismatch, timeout, stopped };

// The orders of `elementTypes` and `reductions` in src/addon.ts.
enum class Element : int { f32, f16, bf16, i32, u32, bytes };
enum class Reduction : int { sum, max, min };

struct Client;

/** What JavaScript asked for. The memory belongs to its typed arrays, which it keeps until the answer. */
struct Command {
  double id = 0;
  Kind kind = Kind::barrier;
  int communicator = 0;
  char* input = nullptr;
  char* output = nullptr;
  size_t count = 0;
  Element element = Element::bytes;
  Reduction reduction = Reduction::sum;
  int peer = 0;
  int tag = 0;
  /** Most elements of one MPI call. */
  size_t limit = 0;
  /** Milliseconds; none when 0. */
  double timeout = 0;
  /** Of a collective: a number that all ranks must agree on before it begins. */
  uint32_t agreement = 0;
  /** The thread that asks calls MPI itself, and looks for the answer. */
  bool byCaller = false;
  std::shared_ptr<Client> client;
};

/** What JavaScript is answered. */
struct Completion {
  double id = 0;
  Outcome outcome = Outcome::done;
  std::string message;
  std::vector<double> values;
};

/** A command that MPI works on, in one or more parts. */
struct Operation {
  Command command;
  size_t partsLeft = 0;
  Completion answer;
  Clock::time_point deadline = Clock::time_point::max();
  /** Answered. MPI may still finish parts of it, and nobody hears. */
  bool answered = false;
  /** Of a duplicate: where MPI puts the communicator. */
  MPI_Comm duplicated = MPI_COMM_NULL;
  /** Of a collective: the highest agreement of all ranks, and the complement of the lowest. */
  uint32_t agreed[2] = {};
  bool agreeing = false;
};

/** A message that is to come. */
struct Awaited {
  std::shared_ptr<Operation> operation;
  int peer = 0;
  char* target = nullptr;
  size_t bytes = 0;
  int tag = 0;
};

}  // namespace skein
