#include <algorithm>

#include "answers.h"
#include "engine.h"

namespace skein {
namespace {

/**
 * Returns the MPI tag of one part: the collective's tag, and whether more parts follow, so that lengths that differ by
 * complete parts are detected.
 */
int tagOfPart(int tag, bool more, int mask) { return static_cast<int>((static_cast<uint32_t>(tag) << 1 | (more ? 1u : 0u)) & static_cast<uint32_t>(mask)); }

}  // namespace

/** Starts the MPI calls of a command. If starting fails, responds immediately. */
void Engine::begin(Command command) {
  if (command.kind == Kind::initialize) return initialize(command);
  if (!initialized_ || finalized_) {
    const char* reason = finalized_ ? "MPI was finalized in this process" : "MPI is not open in this process";
    return command.client->put(refusal(command, Outcome::stopped, reason));
  }
  if (command.kind == Kind::finalize) return finalize(command);
  if (command.kind == Kind::abort) {
    MPI_Abort(MPI_COMM_WORLD, command.peer);
    return;
  }
  auto operation = std::make_shared<Operation>();
  operation->command = std::move(command);
  operation->answer.id = operation->command.id;
  if (operation->command.timeout > 0) {
    operation->deadline = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(operation->command.timeout * 1000));
    nextDeadline_ = std::min(nextDeadline_, operation->deadline);
  }
  active_ += 1;
  if (operation->command.byCaller) driven_ += 1;
  activeBytes_ += bytesUnderWay(operation->command);
  const Command& c = operation->command;
  if (c.agreement != 0) {
    // Agreement values are compared first: if ranks disagreed, MPI would combine different requests, or write beyond
    // their memory.
    operation->agreeing = true;
    operation->agreed[0] = c.agreement;
    operation->agreed[1] = ~c.agreement;
  }
  beginOrFail(operation);
}

void Engine::beginOrFail(const std::shared_ptr<Operation>& operation) {
  const char* call = "";
  const int code = beginParts(operation, &call);
  if (code == MPI_SUCCESS) return;
  describeFailure(operation->answer, call, code);
  finish(*operation);
}

int Engine::beginParts(const std::shared_ptr<Operation>& operation, const char** call) {
  const Command& c = operation->command;
  const MPI_Comm communicator = communicators_[static_cast<size_t>(c.communicator)];
  const MPI_Datatype type = typeOf(c.element);
  const size_t width = bytesOf(c.element);
  // Looks up the operators late, because they exist only after MPI was opened.
  const auto reduction = [&] { return reductions_.of(c.element, c.reduction); };
  MPI_Request request = MPI_REQUEST_NULL;
  const auto started = [&](int code) {
    if (code != MPI_SUCCESS) return code;
    operation->partsLeft += 1;
    requests_.push_back(request);
    owners_.push_back(operation);
    return code;
  };
  // Calls start(offset in bytes, elements, whether more parts follow) for every part. If there are no elements, there
  // is one empty part.
  const auto cut = [&](auto start) {
    size_t at = 0;
    do {
      const size_t elements = std::min(c.limit, c.count - at);
      const int code = start(at * width, static_cast<int>(elements), at + elements < c.count);
      if (code != MPI_SUCCESS) return code;
      at += elements;
    } while (at < c.count);
    return static_cast<int>(MPI_SUCCESS);
  };
  const int whole = static_cast<int>(c.count);
  const void* input = c.input == c.output ? MPI_IN_PLACE : c.input;

  if (operation->agreeing) {
    *call = "MPI_Iallreduce";
    return started(MPI_Iallreduce(MPI_IN_PLACE, operation->agreed, 2, MPI_UINT32_T, MPI_MAX, communicator, &request));
  }
  switch (c.kind) {
    case Kind::duplicate:
      *call = "MPI_Comm_idup";
      return started(MPI_Comm_idup(communicator, &operation->duplicated, &request));
    case Kind::send:
      *call = "MPI_Isend";
      return cut([&](size_t offset, int bytes, bool more) {
        const int tag = tagOfPart(c.tag, more, tagMask_);
        const int code = MPI_Isend(c.input + offset, bytes, MPI_BYTE, c.peer, tag, communicator, &request);
        return started(code);
      });
    case Kind::receive:
      return cut([&](size_t offset, int bytes, bool more) {
        operation->partsLeft += 1;
        awaited_.push_back({operation, c.peer, c.output + offset, static_cast<size_t>(bytes), tagOfPart(c.tag, more, tagMask_)});
        return static_cast<int>(MPI_SUCCESS);
      });
    case Kind::exchange:
      *call = "MPI_Isend";
      return beginExchange(operation);
    case Kind::allReduce:
      *call = "MPI_Iallreduce";
      return cut([&](size_t offset, int elements, bool) {
        const void* from = input == MPI_IN_PLACE ? input : c.input + offset;
        const int code = MPI_Iallreduce(from, c.output + offset, elements, type, reduction(), communicator, &request);
        return started(code);
      });
    case Kind::broadcast:
      *call = "MPI_Ibcast";
      return cut([&](size_t offset, int elements, bool) {
        return started(MPI_Ibcast(c.output + offset, elements, type, c.peer, communicator, &request));
      });
    case Kind::reduce: {
      *call = "MPI_Ireduce";
      int rank = 0;
      MPI_Comm_rank(communicator, &rank);
      const bool isRoot = rank == c.peer;
      return cut([&](size_t offset, int elements, bool) {
        const void* from = isRoot && input == MPI_IN_PLACE ? input : c.input + offset;
        void* to = isRoot ? c.output + offset : nullptr; // MPI does not write the output of ranks other than the root.
        return started(MPI_Ireduce(from, to, elements, type, reduction(), c.peer, communicator, &request));
      });
    }
    case Kind::reduceScatter:
      *call = "MPI_Ireduce_scatter_block";
      return started(MPI_Ireduce_scatter_block(c.input, c.output, whole, type, reduction(), communicator, &request));
    case Kind::allGather:
      *call = "MPI_Iallgather";
      return started(MPI_Iallgather(c.input, whole, type, c.output, whole, type, communicator, &request));
    case Kind::allToAll:
      *call = "MPI_Ialltoall";
      return started(MPI_Ialltoall(c.input, whole, type, c.output, whole, type, communicator, &request));
    case Kind::barrier:
      *call = "MPI_Ibarrier";
      return started(MPI_Ibarrier(communicator, &request));
    case Kind::initialize:
    case Kind::finalize:
    case Kind::abort:
      break;
  }
  *call = "an unknown command";
  return MPI_ERR_ARG;
}

/**
 * Sends the input to every other rank, and awaits the same number of bytes from each of them. The bytes of rank r are
 * stored in chunk r of the output.
 */
int Engine::beginExchange(const std::shared_ptr<Operation>& operation) {
  const Command& c = operation->command;
  const MPI_Comm communicator = communicators_[static_cast<size_t>(c.communicator)];
  const size_t bytes = c.count * bytesOf(c.element);
  const int tag = tagOfPart(c.tag, false, tagMask_);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  for (int peer = 0; peer < size; peer++) {
    if (peer == rank) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(c.input, static_cast<int>(bytes), MPI_BYTE, peer, tag, communicator, &request);
    if (code != MPI_SUCCESS) return code;
    operation->partsLeft += 2;
    requests_.push_back(request);
    owners_.push_back(operation);
    awaited_.push_back({operation, peer, c.output + static_cast<size_t>(peer) * bytes, bytes, tag});
  }
  return MPI_SUCCESS;
}

}  // namespace skein
