/**
 * Names of implementations for rows, legends and pairings. Each name states whether ranks are threads or processes, and
 * the transport between them.
 */
export const names = {
  threads: "threads of one process",
  tcp: "processes over TCP",
  tls: "processes over TLS",
  mpi: "MPI adapter, processes over shared memory",
  mpiSchedules: "schedules over MPI, processes",
  mpiCalls: "MPI adapter without companion, processes",
  mpiCallSchedules: "schedules over MPI without companion, processes",
  openMpi: "Open MPI, processes over shared memory",
  openMpiCalls: "MPI_Iallreduce in C, processes over shared memory",
  openMpiTcp: "Open MPI, processes over TCP",
  gloo: "Gloo in C++, processes over TCP",
  pytorch: "Gloo from Python, processes over TCP",
} as const;
