/* All-reduce between two processes over MPI; prints a line of JSON for each size, like threads.ts.
   mpicc -O3 open-mpi.c -o open-mpi && mpirun -n 2 --mca btl self,vader ./open-mpi */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { long bytes; int samples; } sizes[] = {{1L << 16, 500}, {1L << 20, 200}, {1L << 24, 30}, {1L << 26, 15}};
static int rank, world_size;

static void all_reduce(float *values, long count) { MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

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
  for (int s = 0; s < 4; s++) {
    long count = sizes[s].bytes / (long)sizeof(float);
    float *values = malloc(sizes[s].bytes);
    double taken[500], slower[500];
    validate(values, count);
    memset(values, 0, sizes[s].bytes);
    for (int i = 0; i < 3; i++) all_reduce(values, count);
    for (int i = 0; i < sizes[s].samples; i++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double begin = MPI_Wtime();
      all_reduce(values, count);
      taken[i] = (MPI_Wtime() - begin) * 1e6;
    }
    MPI_Reduce(taken, slower, sizes[s].samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    validate(values, count);
    if (rank == 0) {
      printf("{\"bytes\":%ld,\"microseconds\":[", sizes[s].bytes);
      for (int i = 0; i < sizes[s].samples; i++) printf("%s%.3f", i ? "," : "", slower[i]);
      printf("]}\n");
    }
    free(values);
  }
  MPI_Finalize();
  return 0;
}
