/* In-place f32 all-reduces between processes over MPI. Prints lines of JSON: its conditions, then for each size the
   slowest rank's time of each all-reduce.
   mpicc -O3 open-mpi.c -o open-mpi && mpirun -n 2 --mca btl self,vader ./open-mpi blocking 4096:1000 1048576:200 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, world_size, blocking;

/* Reads the single-copy mechanism that Open MPI uses between processes of this machine at run time. The mechanism may
   differ from the setting if the kernel rejects the setting. Empty if the MPI library does not report the mechanism. */
static void read_single_copy(char *words, int length) {
  int index, bind, scope, verbosity, count, provided;
  MPI_Datatype type;
  MPI_T_enum names;
  MPI_T_cvar_handle handle;
  words[0] = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  if (MPI_T_cvar_get_index("btl_vader_single_copy_mechanism", &index) == MPI_SUCCESS) {
    int value = -1, code, items = 0, name_length = 0, note_length = 0;
    MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &names, NULL, &note_length, &bind, &scope);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    MPI_T_cvar_read(handle, &value);
    if (names != MPI_T_ENUM_NULL) MPI_T_enum_get_info(names, &items, NULL, &name_length);
    for (int item = 0; item < items; item++) {
      char name[64];
      name_length = sizeof name;
      MPI_T_enum_get_item(names, item, &code, name, &name_length);
      if (code == value) snprintf(words, length, "%s", name);
    }
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
}

static void print_conditions(void) {
  cpu_set_t processors;
  char single_copy[64];
  sched_getaffinity(0, sizeof processors, &processors);
  read_single_copy(single_copy, sizeof single_copy);
  printf("{\"processors\":%d,\"of\":%ld,\"singleCopy\":\"%s\"}\n", CPU_COUNT(&processors), sysconf(_SC_NPROCESSORS_ONLN), single_copy);
}

static void all_reduce(float *values, long count) {
  if (blocking) {
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else {
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void validate(float *values, long count) {
  for (long i = 0; i < count; i++) values[i] = (float)(i % 7 + rank);
  all_reduce(values, count);
  for (long i = 0; i < count; i++) {
    float expected = (float)((i % 7) * world_size + world_size * (world_size - 1) / 2);
    if (values[i] != expected) {
      fprintf(stderr, "rank %d: element %ld of %ld is %g instead of %g\n", rank, i, count, values[i], expected);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;
  if (rank == 0) print_conditions();
  for (int argument = 2; argument < argc; argument++) {
    long bytes;
    int samples;
    if (sscanf(argv[argument], "%ld:%d", &bytes, &samples) != 2 || bytes < 4 || samples < 1) {
      fprintf(stderr, "\"%s\" is no size; write bytes:samples, such as 4096:1000\n", argv[argument]);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long count = bytes / (long)sizeof(float);
    float *values = malloc(bytes);
    double *taken = malloc(samples * sizeof(double)), *slowest = malloc(samples * sizeof(double));
    int warm_ups = samples / 5 > 10 ? samples / 5 : 10;
    validate(values, count);
    memset(values, 0, bytes);
    for (int i = 0; i < warm_ups; i++) all_reduce(values, count);
    for (int i = 0; i < samples; i++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double begin = MPI_Wtime();
      all_reduce(values, count);
      taken[i] = (MPI_Wtime() - begin) * 1e6;
    }
    validate(values, count);
    MPI_Reduce(taken, slowest, samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("{\"bytes\":%ld,\"microseconds\":[", bytes);
      for (int i = 0; i < samples; i++) printf("%s%.3f", i ? "," : "", slowest[i]);
      printf("]}\n");
      fflush(stdout);
    }
    free(values), free(taken), free(slowest);
  }
  MPI_Finalize();
  return 0;
}
