/* All-reduce of f32 in place between processes over MPI; prints a line of JSON for each size: the slowest rank's time of each all-reduce.
   mpicc -O3 open-mpi.c -o open-mpi && mpirun -n 2 --mca btl self,vader ./open-mpi blocking 4096:1000 1048576:200 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, world_size, blocking;

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
