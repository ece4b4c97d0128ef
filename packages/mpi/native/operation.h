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

// Kinds of commands, in the order of `commandKinds` in src/addon.ts.
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

// Outcomes of commands, in the order of `outcomes` in src/addon.ts.
enum class Outcome : int { done, failed, mismatch, timeout, stopped };

// Element types and reductions, in the orders of `elementTypes` and `reductions` in src/addon.ts.
enum class Element : int { f32, f16, bf16, i32, u32, bytes };
enum class Reduction : int { sum, max, min };

struct Client;

/** A command from JavaScript. Its memory belongs to typed arrays that JavaScript keeps alive until the response. */
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
  /** Maximum number of elements per MPI call. */
  size_t limit = 0;
  /** Timeout in milliseconds. 0: no timeout. */
  double timeout = 0;
  /**
   * For collectives: a number that must be equal on all ranks, compared before the collective begins. 0: not compared.
   */
  uint32_t agreement = 0;
  /** Whether the posting thread calls MPI itself, and polls for the response. */
  bool byCaller = false;
  std::shared_ptr<Client> client;
};

/** Response to JavaScript. */
struct Completion {
  double id = 0;
  Outcome outcome = Outcome::done;
  std::string message;
  std::vector<double> values;
};

/** A command in progress, in one or more parts. */
struct Operation {
  Command command;
  size_t partsLeft = 0;
  Completion answer;
  Clock::time_point deadline = Clock::time_point::max();
  /** Whether the operation has a response. MPI may still finish parts of the operation, which are ignored. */
  bool answered = false;
  /** New communicator of a duplicate command. */
  MPI_Comm duplicated = MPI_COMM_NULL;
  /** For a collective: the highest agreement value of all ranks, and the complement of the lowest. */
  uint32_t agreed[2] = {};
  bool agreeing = false;
};

/** An awaited message. */
struct Awaited {
  std::shared_ptr<Operation> operation;
  int peer = 0;
  char* target = nullptr;
  size_t bytes = 0;
  int tag = 0;
};

}  // namespace skein
