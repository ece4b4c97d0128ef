/* In-place f32 all-reduces between processes over loopback by Gloo, called with PyTorch's options but from C++. Prints
   lines of JSON like open-mpi.c: its conditions, then for each size the slowest rank's time of each all-reduce.
   c++ -std=c++17 -O3 gloo.cc -lgloo -o gloo && ./gloo 2 4096:1000 1048576:200 */
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Size {
  size_t bytes;
  int samples;
};

static Size parse_size(const char *word) {
  long bytes;
  int samples;
  if (std::sscanf(word, "%ld:%d", &bytes, &samples) != 2 || bytes < 4 || samples < 1)
    throw std::invalid_argument("\"" + std::string(word) + "\" is no size; write bytes:samples, such as 4096:1000");
  return {static_cast<size_t>(bytes), samples};
}

/* Gloo overloads each reduction function; these variables select the overloads that PyTorch passes to all-reduces. */
using Reduce = void (*)(void *, const void *, const void *, size_t);
static const Reduce sum = &gloo::sum<float>, maximum = &gloo::max<double>;

static void validate(gloo::AllreduceOptions &all_reduce, std::vector<float> &values, int rank, int world_size) {
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(i % 7 + rank);
  gloo::allreduce(all_reduce);
  for (size_t i = 0; i < values.size(); i++) {
    float expected = static_cast<float>((i % 7) * world_size + world_size * (world_size - 1) / 2);
    if (values[i] != expected)
      throw std::runtime_error("element " + std::to_string(i) + " of " + std::to_string(values.size()) + " is " +
                               std::to_string(values[i]) + " instead of " + std::to_string(expected));
  }
}

static void run(int rank, int world_size, const std::string &folder, const std::vector<Size> &sizes) {
  gloo::transport::tcp::attr loopback;
  loopback.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(loopback);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, world_size);
  context->connectFullMesh(store, device);
  gloo::BarrierOptions barrier(context);
  if (rank == 0) {
    cpu_set_t processors;
    sched_getaffinity(0, sizeof processors, &processors);
    std::printf("{\"processors\":%d,\"of\":%ld,\"version\":\"%d.%d.%d\"}\n", CPU_COUNT(&processors), sysconf(_SC_NPROCESSORS_ONLN),
                GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  }
  for (const Size &size : sizes) {
    std::vector<float> values(size.bytes / sizeof(float));
    std::vector<double> taken(size.samples);
    gloo::AllreduceOptions all_reduce(context), slowest(context);
    all_reduce.setOutput(values.data(), values.size());
    all_reduce.setReduceFunction(sum);
    slowest.setOutput(taken.data(), taken.size());
    slowest.setReduceFunction(maximum);
    validate(all_reduce, values, rank, world_size);
    std::fill(values.begin(), values.end(), 0.0f);
    for (int i = 0; i < std::max(10, size.samples / 5); i++) gloo::allreduce(all_reduce);
    for (double &microseconds : taken) {
      gloo::barrier(barrier);
      auto begin = std::chrono::steady_clock::now();
      gloo::allreduce(all_reduce);
      microseconds = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    }
    validate(all_reduce, values, rank, world_size);
    gloo::allreduce(slowest);
    if (rank == 0) {
      std::printf("{\"bytes\":%zu,\"microseconds\":[", size.bytes);
      for (size_t i = 0; i < taken.size(); i++) std::printf("%s%.3f", i ? "," : "", taken[i]);
      std::printf("]}\n");
      std::fflush(stdout);
    }
  }
  gloo::barrier(barrier);  // no rank closes connections while another rank still measures
}

int main(int argc, char **argv) {
  int world_size = argc > 1 ? std::atoi(argv[1]) : 0;
  std::vector<Size> sizes;
  try {
    if (world_size < 1 || argc < 3) throw std::invalid_argument("say how many ranks, and sizes: gloo 2 4096:1000");
    for (int argument = 2; argument < argc; argument++) sizes.push_back(parse_size(argv[argument]));
  } catch (const std::invalid_argument &error) {
    std::fprintf(stderr, "Error: %s\n", error.what());
    return 2;
  }
  // Ranks find each other through files in this folder.
  std::string folder = (std::filesystem::temp_directory_path() / "gloo-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("Error: no folder for the ranks to meet");
    return 1;
  }
  for (int rank = 0; rank < world_size; rank++) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the system kills the ranks when this program ends
    try {
      run(rank, world_size, folder, sizes);
      return 0;
    } catch (const std::exception &error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      return 1;
    }
  }
  bool failed = false;
  for (int status; wait(&status) > 0;) failed = failed || status != 0;
  std::filesystem::remove_all(folder);
  return failed;
}
