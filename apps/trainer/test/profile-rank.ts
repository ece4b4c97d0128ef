import { parentPort, workerData } from "node:worker_threads";
import { joinWorld, type WorldConnection } from "@skein/collectives/node";
import type { GradientProfile } from "@skein/cost-model";
import type { Job } from "@skein/job/node";
import { buildParts } from "@skein/step/node";
import { openBackend, type BackendName } from "../src/backend/backend.ts";
import { measureProfile } from "../src/planning/measure-profile.ts";
import { prepare } from "../src/preparation/prepare.ts";

export interface ProfileRank {
  readonly connection: WorldConnection;
  readonly job: Job & { readonly backend: BackendName };
}

export type ProfileAnswer = { readonly profile: GradientProfile } | { readonly error: string };

// Entry point of a rank's thread.
if (parentPort !== null) {
  const { connection, job } = workerData as ProfileRank;
  const { backend, close } = await openBackend(job.backend, { memory: connection.memory });
  try {
    const { data, model, totalSteps } = await prepare(job);
    const { profile } = await measureProfile({
      job,
      parts: buildParts({ job, model, totalSteps, train: data.train }),
      backend,
      communicators: { data: joinWorld(connection) },
      rank: connection.rank,
      train: data.train,
    });
    parentPort.postMessage({ profile } satisfies ProfileAnswer);
  } catch (error) {
    parentPort.postMessage({ error: String(error) } satisfies ProfileAnswer); // throwing here would end Dawn's process
  } finally {
    close();
  }
}
