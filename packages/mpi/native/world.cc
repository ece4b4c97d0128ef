#include <dlfcn.h>

#include "answers.h"
#include "engine.h"

namespace skein {
namespace {

/**
 * Makes MPI's symbols visible to the plug-ins that MPI loads. Node loads addons, and with them libmpi, with local
 * symbols.
 */
void showLibrary() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) != 0) dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/** Finds, for each rank, the lowest rank of its host. Ranks of a host can share memory. */
int findHosts(int rank, int size, std::vector<int>* leaders) {
  MPI_Comm host = MPI_COMM_NULL;
  int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  if (code != MPI_SUCCESS) return code;
  int leader = rank;
  code = MPI_Bcast(&leader, 1, MPI_INT, 0, host);
  MPI_Comm_free(&host);
  if (code != MPI_SUCCESS) return code;
  leaders->resize(static_cast<size_t>(size));
  return MPI_Allgather(&leader, 1, MPI_INT, leaders->data(), 1, MPI_INT, MPI_COMM_WORLD);
}

}  // namespace

/**
 * Opens MPI, one time per process. The response contains [rank, size, whether several threads may call MPI in turn,
 * leader of rank 0, leader of rank 1, …].
 */
void Engine::initialize(const Command& command) {
  Completion answer;
  answer.id = command.id;
  if (finalized_) return command.client->put(refusal(command, Outcome::stopped, "MPI was finalized in this process and cannot be opened again"));
  if (!initialized_) {
    showLibrary();
    const char* call = "MPI_Init_thread";
    int provided = MPI_THREAD_SINGLE;
    int rank = 0;
    int size = 0;
    std::vector<int> leaders;
    int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (code == MPI_SUCCESS) {
      call = "MPI_Comm_set_errhandler";
      code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS) {
      MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      MPI_Comm_size(MPI_COMM_WORLD, &size);
      call = "MPI_Comm_split_type";
      code = findHosts(rank, size, &leaders);
    }
    if (code == MPI_SUCCESS) {
      call = "MPI_Op_create";
      code = reductions_.create();
    }
    if (code != MPI_SUCCESS) {
      describeFailure(answer, call, code);
      return command.client->put(std::move(answer));
    }
    void* upper = nullptr;
    int known = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &known);
    const int upperBound = known ? *static_cast<int*>(upper) : 32767;
    while (tagMask_ <= (upperBound - 1) / 2) tagMask_ = tagMask_ * 2 + 1;
    communicators_ = {MPI_COMM_WORLD};
    world_ = {static_cast<double>(rank), static_cast<double>(size), provided >= MPI_THREAD_SERIALIZED ? 1.0 : 0.0};
    world_.insert(world_.end(), leaders.begin(), leaders.end());
    initialized_ = true;
  }
  answer.values = world_;
  command.client->put(std::move(answer));
}

/** Closes MPI. Refused while calls of any thread are in flight, because MPI_Finalize would wait for them. */
void Engine::finalize(const Command& command) {
  Completion answer;
  answer.id = command.id;
  if (!requests_.empty() || !awaited_.empty() || refusedMessage_) {
    const std::string text = std::to_string(requests_.size() + awaited_.size() + (refusedMessage_ ? 1 : 0)) +
                             " calls or messages are still in flight; after a failed collective, end the process, or end the job by abort";
    return command.client->put(refusal(command, Outcome::failed, text.c_str()));
  }
  reductions_.free();
  for (size_t i = 1; i < communicators_.size(); i++) MPI_Comm_free(&communicators_[i]);
  const int code = MPI_Finalize();
  finalized_ = true;
  if (code != MPI_SUCCESS) {
    answer.outcome = Outcome::failed;
    answer.message = "MPI_Finalize failed with code " + std::to_string(code); // MPI_Error_string is not available after MPI_Finalize.
  }
  command.client->put(std::move(answer));
}

}  // namespace skein
